/** A page that lets the test call the program of a browser library. */

function show(id, text = '') {
  const paragraph = document.createElement('p');
  paragraph.id = id;
  paragraph.textContent = `${text} ${location.href}`;
  document.body.append(paragraph);
}
const fail = (reason) => show('failed', reason?.message ?? reason);
addEventListener('unhandledrejection', ({ reason }) => fail(reason));

// Import late, to show the error of a library that does not start.
const library = await import('./library.mjs').catch(fail);
globalThis.connect = () => void library.connect();
globalThis.take = (step) =>
  Promise.race([
    library[step](),
    new Promise((_, reject) => setTimeout(reject, 5_000, new Error(`${step}: no result in 5 s`))),
  ]);
if (library !== undefined) show(location.search === '' ? 'ready' : 'returned');
