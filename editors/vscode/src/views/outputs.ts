/**
 * Opens what a run made, each kind where it is seen best: pictures in the image viewer, Plotly and HTML in a locked-down
 * webview, texts in an editor, everything else by saving it.
 */
import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';
import { type Artifact, SCHEME } from '../lsp_ext';
import { artifactPath, baseName } from '../uris';
import { htmlPage, type PageParts, plotlyPage } from './output_html';

/** Interactive outputs larger than this (bytes) are offered for saving instead. */
const PAGE_LIMIT = 48 * 1024 * 1024;

/** Opens artifacts. */
export class Outputs {
  private readonly panels = new Map<string, vscode.WebviewPanel>();

  constructor(
    private readonly extension: vscode.Uri,
    private readonly read: (uri: vscode.Uri) => Promise<Uint8Array>,
    private readonly column: () => vscode.ViewColumn,
  ) {}

  /** Opens one artifact beside, leaving the focus where it is. */
  async open(run: string, artifact: Artifact): Promise<void> {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: artifactPath(run, artifact.name) });
    const kind = kindOf(artifact);
    if (kind === 'plotly' || kind === 'html') {
      await this.openPage(uri, artifact, kind);
    } else if (kind === 'other') {
      await this.offerToSave(run, artifact);
    } else {
      await vscode.commands.executeCommand('vscode.open', uri, {
        viewColumn: this.column(),
        preserveFocus: true,
        preview: true,
      } satisfies vscode.TextDocumentShowOptions);
    }
  }

  private async openPage(uri: vscode.Uri, artifact: Artifact, kind: 'plotly' | 'html'): Promise<void> {
    const key = uri.toString();
    const shown = this.panels.get(key);
    if (shown !== undefined) {
      shown.reveal(undefined, true);
      return;
    }
    const bytes = await this.read(uri);
    if (bytes.length > PAGE_LIMIT) {
      throw new Error(vscode.l10n.t('{0} is too large to open here. Save it to a file instead.', artifact.name));
    }
    const text = Buffer.from(bytes).toString('utf8');
    const figure: unknown = kind === 'plotly' ? JSON.parse(text) : undefined;
    const dist = vscode.Uri.joinPath(this.extension, 'dist');
    const panel = vscode.window.createWebviewPanel(
      'codeinterp.output',
      baseName(artifact.name),
      { viewColumn: this.column(), preserveFocus: true },
      { enableScripts: true, localResourceRoots: kind === 'plotly' ? [dist] : [], enableForms: false },
    );
    this.panels.set(key, panel);
    panel.onDidDispose(() => this.panels.delete(key));
    const parts: PageParts = {
      nonce: randomBytes(16).toString('hex'),
      cspSource: panel.webview.cspSource,
      plotlyUri: panel.webview.asWebviewUri(vscode.Uri.joinPath(dist, 'plotly.min.js')).toString(),
    };
    panel.webview.html =
      kind === 'plotly' ? plotlyPage(figure, parts) : htmlPage(text, vscode.l10n.t('Scripts of this output are not run here. Save it to see it in a browser.'), parts);
  }

  private async offerToSave(run: string, artifact: Artifact): Promise<void> {
    const save = vscode.l10n.t('Save As…');
    const text = vscode.l10n.t('{0} ({1}) can be saved and opened in its own program.', artifact.name, artifact.mime);
    if ((await vscode.window.showInformationMessage(text, save)) === save) {
      await vscode.commands.executeCommand('codeinterp.saveArtifact', { run, name: artifact.name });
    }
  }
}

function kindOf(artifact: Artifact): 'image' | 'plotly' | 'html' | 'text' | 'other' {
  const mime = artifact.mime.toLowerCase();
  if (mime.includes('plotly')) {
    return 'plotly';
  }
  if (mime.startsWith('text/html')) {
    return 'html';
  }
  // An SVG may carry script: the image viewer shows it as a picture, where none runs.
  if (mime.startsWith('image/')) {
    return 'image';
  }
  return mime.startsWith('text/') || mime.includes('json') || mime.includes('xml') ? 'text' : 'other';
}
