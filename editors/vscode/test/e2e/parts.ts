/**
 * The real parts that the scenarios need. A missing one fails the run, with the script that brings it.
 */
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import * as path from 'node:path';

/** Where the parts of all tests are kept. */
export const cache = path.join(process.env['XDG_CACHE_HOME'] ?? path.join(homedir(), '.cache'), 'codeinterp-testbed');
/** Where screenshots go, to be looked at. */
export const screens = path.join(cache, 'screens', 'vscode');
/** The extension's folder. */
export const root = path.join(__dirname, '..', '..');

/** Paths of the parts. */
export interface Parts {
  node: string;
  codeServer: string;
  chromium: string;
  binary: string;
}

/** Finds the parts in the environment, or in what the setup scripts have noted. */
export function findParts(): Parts {
  const noted = notedEnvironment();
  const part = (name: string, script: string): string => {
    const value = onPath(process.env[name] ?? noted.get(name));
    if (value === undefined || !existsSync(value)) {
      throw new Error(`${name} is missing (${value ?? 'not set'}): run "bash tests/setup/${script}.sh" in the project's folder.`);
    }
    return value;
  };
  const binary = process.env['CODEINTERP_BIN'] ?? path.join(root, '..', '..', 'target', 'debug', 'codeinterp');
  if (!existsSync(binary)) {
    throw new Error(`The program under test is missing at ${binary}: run "cargo build", or name it in CODEINTERP_BIN.`);
  }
  return {
    node: path.join(part('NODE_BIN', 'node'), 'node'),
    codeServer: part('CODE_SERVER_ENTRY', 'code-server'),
    chromium: part('CHROMIUM', 'browser'),
    binary: path.resolve(binary),
  };
}

/** A bare name is looked up as a shell would. */
function onPath(value: string | undefined): string | undefined {
  if (value === undefined || value.includes(path.sep)) {
    return value;
  }
  const folders = (process.env['PATH'] ?? '').split(path.delimiter);
  return folders.map((folder) => path.join(folder, value)).find((file) => existsSync(file)) ?? value;
}

function notedEnvironment(): Map<string, string> {
  const file = path.join(cache, 'env');
  const noted = new Map<string, string>();
  for (const match of (existsSync(file) ? readFileSync(file, 'utf8') : '').matchAll(/^export (\w+)=(.*)$/gm)) {
    noted.set(match[1] ?? '', (match[2] ?? '').replace(/^['"]|['"]$/g, ''));
  }
  return noted;
}
