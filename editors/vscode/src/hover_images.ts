/**
 * Pictures in hovers. VS Code loads no image of our scheme there, so that small ones are put into the text itself.
 */
import * as vscode from 'vscode';

/** A picture as Markdown, of a run's artifact. */
const IMAGE = /!\[([^\]\n]*)\]\((codeinterp:[^)\s]+)\)/g;
/** The largest picture that is put into a hover, in bytes: Markdown longer than 100,000 characters is cut by VS Code. */
const LIMIT = 64 * 1024;

/** The hover with its charts as `data:` images; a chart that is too large, or gone, becomes a link. */
export async function withInlineImages(hover: vscode.Hover, read: (uri: vscode.Uri) => Promise<Uint8Array>): Promise<vscode.Hover> {
  for (const content of hover.contents) {
    if (content instanceof vscode.MarkdownString && content.value.includes('](codeinterp:')) {
      content.value = await inline(content.value, read);
    }
  }
  return hover;
}

async function inline(text: string, read: (uri: vscode.Uri) => Promise<Uint8Array>): Promise<string> {
  let result = '';
  let from = 0;
  for (const match of text.matchAll(IMAGE)) {
    const [whole, alt = '', link = ''] = match;
    result += text.slice(from, match.index) + (await image(alt, link, read));
    from = match.index + whole.length;
  }
  return result + text.slice(from);
}

async function image(alt: string, link: string, read: (uri: vscode.Uri) => Promise<Uint8Array>): Promise<string> {
  const uri = vscode.Uri.parse(link);
  try {
    const picture = imageMarkdown(alt, await read(uri));
    if (picture !== undefined) {
      return picture;
    }
  } catch {
    // Gone meanwhile: the link below says so when it is followed.
  }
  return `[${alt}](${link})`;
}

/** A picture as Markdown that carries its bytes, or `undefined` for what is no small picture. */
export function imageMarkdown(alt: string, bytes: Uint8Array): string | undefined {
  const type = imageType(bytes);
  if (type === undefined || bytes.length > LIMIT) {
    return undefined;
  }
  return `![${alt.replace(/[[\]\\\n]/g, ' ')}](data:${type};base64,${Buffer.from(bytes).toString('base64')}|width=300)`;
}

/** The type by the file's first bytes; only what cannot carry script. */
function imageType(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0x89 && bytes[1] === 0x50 && bytes[2] === 0x4e && bytes[3] === 0x47) {
    return 'image/png';
  }
  return bytes[0] === 0xff && bytes[1] === 0xd8 ? 'image/jpeg' : undefined;
}
