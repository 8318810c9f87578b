/**
 * Setups with the scripted server, which does what the question tells it.
 */
import * as path from 'node:path';
import type { Setup } from './editor';
import { type Parts, root } from './parts';

/** A small table. */
export const TABLE = 'region,month,revenue\nNorth,Jan,120\nSouth,Jan,95\nEast,Feb,143\nWest,Mar,88\n';

/** The scripted server. */
export const SCRIPTED_SERVER = path.join(root, 'test', 'server', 'codeinterp.mjs');

/** A setup whose server is the scripted one. */
export function scripted(parts: Parts, more: Partial<Setup> = {}): Setup {
  return {
    ...more,
    settings: { 'codeinterp.server.path': SCRIPTED_SERVER, ...more.settings },
    files: { 'sales.csv': TABLE, ...more.files },
    // The script's first line asks for `node`.
    env: { PATH: `${path.dirname(parts.node)}${path.delimiter}${process.env['PATH'] ?? ''}`, ...more.env },
  };
}
