/** Builds the text of a CSV file of `count` rows, each with its own tracking number. */
export function buildCsv(count: number): string {
  const numbers = Array.from({ length: count }, (_, index) => `LP${String(index).padStart(9, '0')}CN`);
  return `trackingNumber\n${numbers.join('\n')}\n`;
}
