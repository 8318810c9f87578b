import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { after, test } from 'node:test';
import { locate, type Places } from '../../src/locate';

const root = mkdtempSync(path.join(tmpdir(), 'codeinterp-locate-'));
after(() => rmSync(root, { recursive: true }));

function program(file: string, mode = 0o755): string {
  const full = path.join(root, file);
  mkdirSync(path.dirname(full), { recursive: true });
  writeFileSync(full, '#!/bin/sh\n');
  chmodSync(full, mode);
  return full;
}

function places(over: Partial<Places>): Places {
  return { setting: '', extension: path.join(root, 'none'), path: '', platform: 'linux', home: root, ...over };
}

test('the setting wins, with a home directory', async () => {
  const binary = program('mine/codeinterp');
  assert.deepEqual(await locate(places({ setting: '~/mine/codeinterp' })), { binary, from: 'setting' });
});

test('a setting that names no program is not passed over', async () => {
  program('bin/codeinterp');
  assert.deepEqual(await locate(places({ setting: '/no/such', path: path.join(root, 'bin') })), { tried: ['/no/such'] });
});

test('the bundled binary comes before PATH', async () => {
  const bundled = program('extension/server/codeinterp');
  const onPath = program('bin/codeinterp');
  const at = { path: ['relative', path.dirname(onPath)].join(path.delimiter) };
  assert.deepEqual(await locate(places({ ...at, extension: path.join(root, 'extension') })), { binary: bundled, from: 'bundled' });
  assert.deepEqual(await locate(places(at)), { binary: onPath, from: 'path' });
});

test('a folder or a file that is not executable is no program', async () => {
  mkdirSync(path.join(root, 'folder', 'codeinterp'), { recursive: true });
  program('plain/codeinterp', 0o644);
  const found = await locate(places({ path: [path.join(root, 'folder'), path.join(root, 'plain')].join(path.delimiter) }));
  assert.ok('tried' in found);
});
