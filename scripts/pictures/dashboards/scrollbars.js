// scrollbars.js - for the bundle of page.jsx: esbuild's import of this CommonJS package's default from an .mjs file is the whole package.
export { Scrollbars as default } from './node_modules/react-custom-scrollbars-2/lib/index.js';
