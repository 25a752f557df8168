// Makes the project as a user does: `nest new`, the files of the recipe, and its module in the imports of `AppModule`. The
// packages are those of this folder, without the linters.
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

rmSync('shop', { recursive: true, force: true });
execFileSync('npx', ['nest', 'new', 'shop', '--skip-install', '--skip-git', '--package-manager', 'npm']);
cpSync('src', 'shop/src', { recursive: true });
cpSync('test', 'shop/test', { recursive: true, filter: (path) => !path.endsWith('.test.js') });
const appModule = readFileSync('shop/src/app.module.ts', 'utf8');
const edited = appModule
  .replace('imports: []', 'imports: [TrackingModule]')
  .replace(
    "from './app.service';",
    "from './app.service';\nimport { TrackingModule } from './tracking.module';",
  );
writeFileSync('shop/src/app.module.ts', edited);
