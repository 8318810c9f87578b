import assert from 'node:assert/strict';
import { test } from 'node:test';
import type * as vscode from 'vscode';
import { type Commands, HintCommands } from '../../src/hint_commands';

/** VS Code's table of commands, and what was executed. */
class Table {
  readonly registered = new Map<string, () => unknown>();
  readonly executed: unknown[][] = [];

  readonly commands = {
    registerCommand: (id: string, act: () => unknown) => {
      assert.ok(!this.registered.has(id), `${id} is registered twice`);
      this.registered.set(id, act);
      return { dispose: () => this.registered.delete(id) };
    },
    executeCommand: (...call: unknown[]) => {
      this.executed.push(call);
      return Promise.resolve();
    },
  } as unknown as Commands;
}

function hint(...runs: string[]): vscode.InlayHint {
  const label = runs.map((run) => ({ value: 'chart', command: { command: 'codeinterp.openArtifact', title: 'Open', arguments: [{ run }] } }));
  return { label } as unknown as vscode.InlayHint;
}

function commandOf(bound: vscode.InlayHint, part = 0): vscode.Command {
  assert.ok(typeof bound.label !== 'string');
  const command = bound.label[part]?.command;
  assert.ok(command !== undefined);
  return command;
}

test('a part of a hint runs its command with its arguments, and carries none', () => {
  const table = new Table();
  const bound = new HintCommands(table.commands).bind(hint('r1', 'r2'));
  assert.equal(commandOf(bound, 1).arguments, undefined);
  table.registered.get(commandOf(bound, 1).command)?.();
  assert.deepEqual(table.executed, [['codeinterp.openArtifact', { run: 'r2' }]]);
});

test('the same part in a later answer runs by the same command, so that hints drawn from either work', () => {
  const commands = new HintCommands(new Table().commands);
  assert.equal(commandOf(commands.bind(hint('r1'))).command, commandOf(commands.bind(hint('r1'))).command);
});

test('the commands of hints are bounded, and the one drawn longest ago goes first', () => {
  const table = new Table();
  const commands = new HintCommands(table.commands, 2);
  const first = commandOf(commands.bind(hint('r1'))).command;
  const second = commandOf(commands.bind(hint('r2'))).command;
  commands.bind(hint('r1'));
  commands.bind(hint('r3'));
  assert.equal(table.registered.size, 2);
  assert.ok(table.registered.has(first) && !table.registered.has(second));
  commands.dispose();
  assert.equal(table.registered.size, 0);
});

test('a hint without commands, or whose command needs no arguments, stays as it is', () => {
  const table = new Table();
  const commands = new HintCommands(table.commands);
  assert.equal(commands.bind({ label: '12 cols' } as unknown as vscode.InlayHint).label, '12 cols');
  const plain = { label: [{ value: 'log', command: { command: 'codeinterp.showLog', title: '' } }] } as unknown as vscode.InlayHint;
  assert.equal(commandOf(commands.bind(plain)).command, 'codeinterp.showLog');
  assert.equal(table.registered.size, 0);
});
