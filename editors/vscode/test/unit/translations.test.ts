import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import { test } from 'node:test';

const root = path.join(__dirname, '..', '..');

function json(name: string): Record<string, string> {
  return JSON.parse(readFileSync(path.join(root, name), 'utf8')) as Record<string, string>;
}

function sources(): string {
  const files = readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  return files.map((name) => readFileSync(path.join(root, 'src', name), 'utf8')).join('\n');
}

test('every text of the code is in the Chinese bundle, and nothing else is', () => {
  const used = new Set<string>();
  for (const match of sources().matchAll(/l10n\.t\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")/g)) {
    used.add(match[1] ?? match[2] ?? '');
  }
  assert.ok(used.size > 50);
  assert.deepEqual(Object.keys(json('l10n/bundle.l10n.zh-cn.json')).sort(), [...used].sort());
});

test('a translation keeps the placeholders of its text', () => {
  const placeholders = (text: string): string[] => [...text.matchAll(/\{\d\}/g)].map(String).sort();
  for (const [english, chinese] of Object.entries(json('l10n/bundle.l10n.zh-cn.json'))) {
    assert.deepEqual(placeholders(chinese), placeholders(english), english);
  }
});

test('every name in the manifest has a text in both languages', () => {
  const names = [...readFileSync(path.join(root, 'package.json'), 'utf8').matchAll(/%([\w.]+)%/g)].map((match) => match[1] ?? '');
  const wanted = [...new Set(names)].sort();
  assert.deepEqual(Object.keys(json('package.nls.json')).sort(), wanted);
  assert.deepEqual(Object.keys(json('package.nls.zh-cn.json')).sort(), wanted);
});
