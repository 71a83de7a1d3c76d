// Unpacks the Chromium that an npm package brings, with the libraries that a bare system lacks: node unpack_browser.mjs NPM FOLDER

import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [npm, folder] = process.argv.slice(2);
rmSync(folder, { force: true, recursive: true });
mkdirSync(folder, { recursive: true });
// The package unpacks into the folder for temporary files.
process.env.TMPDIR = folder;
const own = join(npm, "node_modules", "@sparticuz", "chromium");
const { inflate } = await import(pathToFileURL(join(own, "build", "index.js")));
await Promise.all(["chromium.br", "fonts.tar.br", "al2023.tar.br"].map((name) => inflate(join(own, "bin", name))));
