/**
 * The table of commands. Those of the server have its names: a lens, a hint or a link of the server lands here with the
 * server's arguments, a menu with VS Code's, the palette with none.
 */
import * as vscode from 'vscode';
import { openSettings } from '../config';
import { type Ctx, guarded } from '../ctx';
import { analyzeFile, askFile, askSelection, followUp, rerun, runSelection } from './analyze';
import { cancel, clearHints, restartKernel, showVariables, stopSandbox } from './kernel';
import { exportRun, openArtifact, openReport, saveArtifact } from './results';
import { clearApiKey, doctor, menu, openSample, selectModel, setApiKey } from './tools';

type Body = (ctx: Ctx, argument: unknown, selected: unknown) => Promise<void>;

/** Registers all commands. */
export function registerCommands(ctx: Ctx): vscode.Disposable {
  let doctorChannel: vscode.OutputChannel | undefined;
  const table: Record<string, Body> = {
    analyzeFile,
    askFile,
    askSelection,
    runSelection,
    followUp,
    rerun,
    cancel,
    openReport,
    openArtifact,
    saveArtifact,
    export: exportRun,
    variables: showVariables,
    clearHints,
    restartKernel,
    stopSandbox,
    selectModel,
    setApiKey,
    clearApiKey,
    openSample,
    menu,
    doctor: (c) => doctor(c, (doctorChannel ??= vscode.window.createOutputChannel('Code Interpreter: Doctor'))),
    showLog: (c) => {
      c.log.show();
      return Promise.resolve();
    },
    restartServer: (c) => c.server.restart(),
    openSettings: async (c) => {
      await openSettings(`@ext:${c.context.extension.id}`);
    },
    refresh: async (c) => {
      await c.server.ready();
      await c.reloadRuns();
      c.refreshVariables();
      await c.status.refresh();
    },
  };
  const registered = Object.entries(table).map(([name, body]) =>
    vscode.commands.registerCommand(`codeinterp.${name}`, (argument: unknown, selected: unknown) => guarded(ctx, () => body(ctx, argument, selected))),
  );
  return vscode.Disposable.from(...registered, new vscode.Disposable(() => doctorChannel?.dispose()));
}
