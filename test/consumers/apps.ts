// The apps that `npm run test:consumers` installs the packed package into. The script writes the `package.json` of each.

import { fileURLToPath } from 'node:url';

export interface App {
  /** Its folder here. Default: its name. */
  readonly folder?: string;
  /** Copies this folder of examples/ into the app, and adds its dependencies. */
  readonly example?: string;
  /** Writes the files of this page of docs/recipes into the app. */
  readonly recipe?: string;
  /** The major version of Node that it needs. Default 20. */
  readonly node?: string;
  /** The command of its tests. */
  readonly test: string;
  /** More fields of its `package.json`. */
  readonly manifest?: Readonly<Record<string, unknown>>;
  /** The only systems for which it has programs, such as a browser. Default: all. */
  readonly system?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

const NODE_TEST = 'node --test --test-force-exit test/';
const TSC =
  'tsc --noEmit --strict --target ES2022 --lib ES2023,DOM --types node --skipLibCheck --allowImportingTsExtensions';
const SETTINGS =
  'TRACKING_BASE_URL=https://api.example.com/public/v1 TRACKING_API_KEY=any TRACKING_WEBHOOK_SECRET=whsec';
const IN_SHOP = `cd shop && npm run build && npm test && ${SETTINGS} npm run test:e2e -- --testTimeout 30000`;

const CLONE = fileURLToPath(new URL('../..', import.meta.url));
const CHROMIUM = {
  '@sparticuz/chromium': '^147.0.0',
  'axe-core': '^4.14.1',
  'playwright-core': '^1.59.0',
};

/** What `nest new` installs, without the linters, and what the recipe and its database need. */
function nest(version: string, typeorm: string): Record<string, string> {
  return {
    '@electric-sql/pglite': '^0.5.14',
    '@electric-sql/pglite-socket': '^0.2.17',
    '@nestjs/cli': version,
    '@nestjs/common': version,
    '@nestjs/core': version,
    '@nestjs/platform-express': version,
    '@nestjs/schematics': version,
    '@nestjs/testing': version,
    '@nestjs/typeorm': version,
    '@types/express': '^5.0.0',
    '@types/node': '^24.0.0',
    '@types/supertest': '^7.0.0',
    pg: '^8.23.1',
    'reflect-metadata': '^0.2.2',
    rxjs: '^7.8.2',
    'source-map-support': '^0.5.21',
    supertest: '^7.0.0',
    typeorm,
  };
}

export const APPS: Readonly<Record<string, App>> = {
  bundlers: {
    test: NODE_TEST,
    dependencies: {
      '@rollup/plugin-node-resolve': '^16.0.3',
      esbuild: '^0.27.7',
      rollup: '^4.60.0',
      vite: '^8.0.0',
      webpack: '^5.105.0',
    },
  },
  'jest-cjs': {
    test: 'jest --ci --testTimeout 30000',
    manifest: { type: 'commonjs' },
    dependencies: {
      '@babel/preset-env': '^7.29.0',
      jest: '^30.5.2',
      'jest-environment-jsdom': '^30.5.2',
      msw: '^2.15.0',
    },
  },
  nestjs: {
    recipe: 'nestjs',
    test: `node make.mjs && node with-database.mjs "${IN_SHOP} && node --test --test-force-exit ../test/"`,
    manifest: { type: 'commonjs' },
    dependencies: {
      ...nest('^11.0.0', '^0.3.31'),
      '@types/jest': '^30.0.0',
      jest: '^30.0.0',
      'ts-jest': '^29.2.5',
      'ts-loader': '^9.5.2',
      'ts-node': '^10.9.2',
      'tsconfig-paths': '^4.2.0',
      typescript: '^5.7.3',
    },
  },
  'nestjs-esm': {
    folder: 'nestjs',
    recipe: 'nestjs',
    node: '22',
    test: `node make.mjs .js && node with-database.mjs "${IN_SHOP}"`,
    dependencies: {
      ...nest('^12.0.0', '^1.1.1'),
      '@vitest/coverage-v8': '^4.1.2',
      typescript: '^6.0.2',
      'vite-tsconfig-paths': '^5.1.4',
      vitest: '^4.1.2',
    },
  },
  nextjs: {
    recipe: 'nextjs',
    test: NODE_TEST,
    dependencies: {
      '@types/node': '^20.19.43',
      '@types/react': '^19.2.0',
      next: '^16.4.6',
      react: '^19.3.1',
      'react-dom': '^19.3.1',
      typescript: '~5.9.3',
    },
  },
  'page-in-chromium': { recipe: 'page', system: 'linux x64', test: NODE_TEST, dependencies: CHROMIUM },
  shop: { example: 'shop', test: `tsc && ${NODE_TEST}` },
  'shop-in-chromium': {
    system: 'linux x64',
    test: `CLONE='${CLONE}' ${NODE_TEST}`,
    dependencies: CHROMIUM,
  },
  'vitest-dom': {
    test: 'vitest run',
    dependencies: { 'happy-dom': '^20.0.0', jsdom: '^27.0.0', vitest: '^4.1.12' },
  },
  'vitest-msw2': {
    folder: 'vitest-msw',
    test: `${TSC} --module NodeNext src/*.ts test/*.ts && vitest run`,
    dependencies: { '@types/node': '^20.19.43', msw: '^2.15.0', typescript: '~5.9.3', vitest: '^4.1.12' },
  },
  'vitest-msw3': {
    folder: 'vitest-msw',
    node: '22',
    test: `${TSC} --module ESNext --moduleResolution bundler src/*.ts test/*.ts && vitest run`,
    dependencies: { '@types/node': '^22.19.0', msw: '^3.0.5', typescript: '~5.9.3', vitest: '^4.1.12' },
  },
  workerd: {
    recipe: 'workers',
    test: NODE_TEST,
    dependencies: { esbuild: '^0.27.7', miniflare: '~4.20260426.0' },
  },
};
