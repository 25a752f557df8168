#!/usr/bin/env node
import { start } from './process.ts';

start('tracking-client');
