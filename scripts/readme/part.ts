/** A part of the README that a program writes. */
export interface Part {
  /** Its name in the marks around it. */
  readonly name: string;
  content(): string;
}
