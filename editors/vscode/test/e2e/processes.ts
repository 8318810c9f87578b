/**
 * Processes behind a window: the servers that it started, and what these started.
 */
import { readdirSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import type { Editor } from './editor';

/** Process ids of the servers that an editor started. */
export function serverPids(editor: Editor, binary: string): number[] {
  return allPids().filter((pid) => {
    const [program, argument] = read(`/proc/${pid}/cmdline`).split('\0');
    const state = /XDG_STATE_HOME=([^\0]*)/.exec(read(`/proc/${pid}/environ`))?.[1];
    return program === binary && argument === 'lsp' && state === path.join(editor.home, 'state');
  });
}

/** The process and all that descend from it. */
export function family(pid: number): number[] {
  const parents = allPids().map((child) => [child, Number(/\) \S (\d+)/.exec(read(`/proc/${child}/stat`))?.[1])] as const);
  const members = [pid];
  for (const member of members) {
    members.push(...parents.filter(([, parent]) => parent === member).map(([child]) => child));
  }
  return members;
}

/** True while the process runs; one that ended and was not yet collected does not. */
export function runs(pid: number): boolean {
  return /\) [^ZX]/.test(read(`/proc/${pid}/stat`));
}

function allPids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** A file of a process; empty when the process has ended. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
