// Makes the project as a user of ES modules does: `nest new` of NestJS 12 (its first choice), the files of the recipe with `.js`
// in their imports, and the recipe's module in the imports of `AppModule`.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

rmSync('shop', { recursive: true, force: true });
const flags = ['--skip-install', '--skip-git', '--package-manager', 'npm', '--no-observe'];
execFileSync('npx', ['nest', 'new', 'shop', ...flags], { stdio: ['ignore', 'inherit', 'inherit'] });
for (const folder of ['src', 'test']) {
  mkdirSync(`shop/${folder}`, { recursive: true });
  for (const file of readdirSync(folder)) {
    const code = readFileSync(`${folder}/${file}`, 'utf8');
    writeFileSync(`shop/${folder}/${file}`, code.replace(/(from '\.[^']*)'/g, "$1.js'"));
  }
}
const appModule = readFileSync('shop/src/app.module.ts', 'utf8');
writeFileSync(
  'shop/src/app.module.ts',
  appModule
    .replace(/imports: \[\s*\]/, 'imports: [TrackingModule]')
    .replace('@Module', "import { TrackingModule } from './tracking.module.js';\n\n@Module"),
);
