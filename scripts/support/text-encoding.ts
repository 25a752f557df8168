// The CommonJS build takes these two classes from Node, because the global ones are missing in jest-environment-jsdom. ky and this
// package use them when they are loaded.
export { TextDecoder, TextEncoder } from 'node:util';
