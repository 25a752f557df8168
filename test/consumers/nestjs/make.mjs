// Makes the project as a user does: `nest new`, the files of the recipe, and its module in the imports of `AppModule`. The
// packages are those of this folder. `make.mjs .js` adds `.js` to imports, for ES modules, the first choice of NestJS 12.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

const [extension = ''] = process.argv.slice(2);
rmSync('shop', { recursive: true, force: true });
const flags = ['--skip-install', '--skip-git', '--package-manager', 'npm'];
if (extension !== '') flags.push('--no-observe');
execFileSync('npx', ['nest', 'new', 'shop', ...flags], { stdio: ['ignore', 'inherit', 'inherit'] });
for (const folder of ['src', 'test']) {
  mkdirSync(`shop/${folder}`, { recursive: true });
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.ts'))) {
    const code = readFileSync(`${folder}/${file}`, 'utf8');
    writeFileSync(`shop/${folder}/${file}`, code.replace(/(from '\.[^']*)'/g, `$1${extension}'`));
  }
}
const appModule = readFileSync('shop/src/app.module.ts', 'utf8');
writeFileSync(
  'shop/src/app.module.ts',
  appModule
    .replace(/imports: \[\s*\]/, 'imports: [TrackingModule]')
    .replace('@Module', `import { TrackingModule } from './tracking.module${extension}';\n\n@Module`),
);
