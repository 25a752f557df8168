import { run } from './server.js';

console.log(await run());
