import { expect, it } from 'vitest';
import { createFakeTrackingService } from '../../../src/testing/index.ts';
import { useImportFolder } from '../import-folder.ts';
import { connect } from '../make-terminal.ts';

const { importRows } = useImportFolder();
const HEAD = 'trackingNumber,courierCode,destinationPostCode';
const FILE = [
  HEAD,
  ...['nl-post', 'nl-post', 'jp-post', 'jp-post', 'jp-post', 'jp-post', 'us-post', ''].map(
    (code, index) => `LA68065883${index}NL,${code},${code === 'nl-post' ? '1011' : ''}`,
  ),
].join('\n');
const makeFake = () => connect(createFakeTrackingService({ limits: false }));

it('rows whose couriers lack a field → sent, and counted with their first three lines', async () => {
  const fake = makeFake();
  const {
    exitCode,
    output: { stdout },
  } = await importRows(FILE, [], { fake });
  expect([exitCode, fake.trackers.length]).toEqual([0, 8]);
  expect(stdout).toContain("     2  The courier 'nl-post' needs `destinationCountryCode`");
  expect(stdout).toMatch(/ without it \(lines 2, 3\)\n/);
  expect(stdout).toContain("     4  The courier 'jp-post' needs `destinationPostCode`");
  expect(stdout).toMatch(/ without it \(lines 4, 5, 6, …\)\n/);
  expect(fake.requests.filter(({ endpoint }) => endpoint === 'couriers.list')).toHaveLength(1);
});

it('--json → a line for each problem', async () => {
  const {
    output: { stdout },
  } = await importRows(FILE, ['--json'], { fake: makeFake() });
  const lines: Record<string, unknown>[] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.filter(({ problem }) => problem === 'missing').map(({ line }) => line)).toEqual([
    2, 3, 4, 5, 6, 7,
  ]);
  expect(lines.filter(({ status }) => status === 'created')).toHaveLength(8);
});

it('many kinds of problems → the ten that most rows have, and the number of the others', async () => {
  const codes = ['jp-post', ...Array.from({ length: 11 }, (_, index) => `typo-${index}`), 'typo-10'];
  const rows = codes.map((code, index) => `LA${680658800 + index}NL,${code},`);
  const { stdout } = (await importRows([HEAD, ...rows].join('\n'), [], { fake: makeFake() })).output;
  expect(stdout).toContain("Couriers\n       2  The service has no courier 'typo-10'");
  expect(stdout.match(/The (?:service has no )?courier /g)).toHaveLength(10);
  expect(stdout).toContain('  and 2 other problems\n');
});

it('no row names a courier → the list is not read', async () => {
  const fake = makeFake();
  await importRows(`${HEAD}\nLA680658838NL,,`, [], { fake });
  expect(fake.requests.map(({ endpoint }) => endpoint)).toEqual(['trackers.createBulk']);
});

it('a list that cannot be read → one warning, and all rows are sent', async () => {
  const fake = makeFake();
  fake.fail('couriers.list', { status: 404, times: 5 });
  const {
    exitCode,
    output: { stderr },
  } = await importRows(FILE, [], { fake });
  expect([exitCode, fake.trackers.length]).toEqual([0, 8]);
  expect(stderr.match(/The couriers are not checked: /g)).toHaveLength(1);
});
