// StyLua's command line as far as the tests need it, over its npm package,
// which is the library only: `--check` compares, without it files are rewritten.
// Settings come from the nearest stylua.toml or .stylua.toml above each file.
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const { STYLUA_PACKAGE } = process.env;
const stylua = await import(pathToFileURL(join(STYLUA_PACKAGE, 'stylua_lib_node.mjs')).href);

const ENUMS = {
  block_newline_gaps: stylua.BlockNewlineGaps,
  call_parentheses: stylua.CallParenType,
  collapse_simple_statement: stylua.CollapseSimpleStatement,
  indent_type: stylua.IndentType,
  line_endings: stylua.LineEndings,
  quote_style: stylua.QuoteStyle,
  space_after_function_names: stylua.SpaceAfterFunctionNames,
  syntax: stylua.LuaVersion,
};

function settingsFor(file) {
  for (let folder = dirname(resolve(file)); ; folder = dirname(folder)) {
    for (const name of ['stylua.toml', '.stylua.toml']) {
      const path = join(folder, name);
      if (existsSync(path)) return readFileSync(path, 'utf8');
    }
    if (folder === dirname(folder)) return '';
  }
}

// The settings are flat `key = value` lines; a key we do not know is an error,
// since a file judged by other settings than the author's would be judged wrongly.
function configFor(file) {
  const config = stylua.Config.new();
  for (const line of settingsFor(file).split('\n')) {
    const match = /^\s*(\w+)\s*=\s*"?([^"#]*?)"?\s*(#.*)?$/.exec(line);
    if (!match) {
      if (line.trim() && !line.trim().startsWith('#')) throw new Error(`stylua settings: cannot read "${line}"`);
      continue;
    }
    const [, key, value] = match;
    const choices = ENUMS[key];
    if (choices) {
      if (!(value in choices)) throw new Error(`stylua settings: ${key} knows no "${value}"`);
      config[key] = choices[value];
    } else if (key === 'column_width' || key === 'indent_width') {
      config[key] = Number(value);
    } else {
      throw new Error(`stylua settings: unknown key ${key}`);
    }
  }
  return config;
}

function* luaFiles(path) {
  if (!statSync(path).isDirectory()) yield path;
  else {
    for (const name of readdirSync(path).sort()) {
      const inner = join(path, name);
      if (statSync(inner).isDirectory()) yield* luaFiles(inner);
      else if (name.endsWith('.lua')) yield inner;
    }
  }
}

function firstDifference(before, after) {
  const [old, fresh] = [before.split('\n'), after.split('\n')];
  const at = old.findIndex((line, index) => line !== fresh[index]);
  const line = at < 0 ? old.length : at;
  return `  line ${line + 1}\n  - ${old[line] ?? '(end)'}\n  + ${fresh[line] ?? '(end)'}`;
}

const check = process.argv.includes('--check');
const paths = process.argv.slice(2).filter((argument) => !argument.startsWith('-'));
let seen = 0;
let wrong = 0;
for (const path of paths.flatMap((argument) => [...luaFiles(argument)])) {
  seen += 1;
  const before = readFileSync(path, 'utf8');
  let after;
  try {
    after = stylua.formatCode(before, configFor(path), undefined, stylua.OutputVerification.None);
  } catch (error) {
    console.error(`${path}: ${error.message ?? error}`);
    wrong += 1;
    continue;
  }
  if (after === before) continue;
  if (check) {
    console.error(`${path} is not formatted:\n${firstDifference(before, after)}`);
    wrong += 1;
  } else {
    writeFileSync(path, after);
  }
}
if (seen === 0) {
  console.error('stylua: no Lua file found');
  wrong += 1;
}
process.exitCode = wrong > 0 ? 1 : 0;
