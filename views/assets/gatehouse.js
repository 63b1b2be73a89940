/** Progressive enhancement: every page also works without JavaScript. */

// English is written as in Britain: day, month, year.
const { lang } = document.documentElement;
const LOCALE = lang === 'en' ? 'en-GB' : lang;
/** The sentences of this script, which `partials/header` prints in the language of the page. */
const TEXTS = document.body.dataset;

lockSubmittedForms();
for (const input of document.querySelectorAll('input[type=password]')) offerToShow(input);
for (const element of document.querySelectorAll('[data-copy]')) offerToCopy(element);
for (const link of document.querySelectorAll('a[data-takes]')) takeAlong(link);
for (const element of document.querySelectorAll('[data-keep-alive]')) keepSessionAlive(element);
// On a phone the sections are one row that scrolls; only a part of it is visible.
for (const section of document.querySelectorAll('.sections [aria-current]')) {
  section.scrollIntoView({ block: 'nearest' });
}
for (const element of document.querySelectorAll('time[datetime]')) showLocally(element);
forgetSecrets(document.querySelectorAll('[data-secret], [data-forget]'));
for (const menu of document.querySelectorAll('.account')) closeByItself(menu);
warnOfUncopied(document.querySelectorAll('[data-secret], [data-forget]'));
for (const form of document.querySelectorAll('form[data-unsaved]')) warnOfUnsaved(form);
offerPasskeys(document.querySelectorAll('form[data-passkey], form[data-passkey-made]'));

/** Sends a form only once, even if its button is pressed several times. */
function lockSubmittedForms() {
  const secondsUntilUnlocked = 10;

  document.addEventListener('submit', (event) => {
    const form = event.target;
    // Not sent yet: the passkey is requested first.
    if (event.defaultPrevented) return;
    if (form.dataset.submitted) {
      event.preventDefault();
      return;
    }
    // `aria-disabled`, because a disabled button would not be sent with its form.
    form.dataset.submitted = 'true';
    for (const button of buttonsOf(form)) button.setAttribute('aria-disabled', 'true');
    // The user may have stopped the request, or the response may have opened another program.
    setTimeout(() => unlock(form), secondsUntilUnlocked * 1000);
  });

  // After Back, a page from the browser's cache still has its forms locked.
  window.addEventListener('pageshow', () => {
    for (const form of document.forms) unlock(form);
  });
}

function unlock(form) {
  delete form.dataset.submitted;
  for (const button of buttonsOf(form)) button.removeAttribute('aria-disabled');
}

function buttonsOf(form) {
  return [...form.elements].filter((element) => element.type === 'submit');
}

/** A button that shows what was typed into a password field. */
function offerToShow(input) {
  const what = input.labels[0]?.textContent.trim() ?? '';
  const button = quietButton(TEXTS.textShow, what);
  const row = document.createElement('div');
  row.className = 'password';
  button.setAttribute('aria-controls', input.id);
  // Moving the field loses the focus that it got by `autofocus` or from the user.
  const hasFocus = document.activeElement === input;
  input.before(row);
  row.append(input, button);
  if (hasFocus) input.focus();

  const show = (isShown) => {
    input.type = isShown ? 'text' : 'password';
    button.firstChild.data = isShown ? TEXTS.textHide : TEXTS.textShow;
  };
  button.addEventListener('click', () => {
    show(input.type === 'password');
    announce(`${what}: ${input.type === 'text' ? TEXTS.textIsShown : TEXTS.textIsHidden}`);
  });
  // Browsers offer to remember what was sent from a text field.
  input.form?.addEventListener('submit', () => show(false));
}

/** Closes a menu on Escape and when the user goes on elsewhere. */
function closeByItself(menu) {
  const summary = menu.querySelector('summary');
  menu.addEventListener('keydown', ({ key }) => {
    if (key !== 'Escape' || !menu.open) return;
    menu.open = false;
    summary.focus();
  });
  for (const event of ['click', 'focusin']) {
    document.addEventListener(event, ({ target }) => {
      if (!menu.contains(target)) menu.open = false;
    });
  }
}

/** Adds the value of the field that `data-takes` names to the link. */
function takeAlong(link) {
  link.addEventListener('click', () => {
    const field = document.getElementById(link.dataset.takes);
    const url = new URL(link.href);
    url.searchParams.set(field.name, field.value.trim());
    link.href = url.href;
  });
}

/** A button that copies the text of an element; `data-copy` says what it is, for screen readers. */
function offerToCopy(element) {
  if (!navigator.clipboard) return;
  const button = quietButton(TEXTS.textCopy, element.dataset.copy);
  button.classList.add('copy');
  // A program is long: its button is above it, also in the order of the Tab key.
  if (element.tagName === 'PRE') element.before(button);
  else element.after(button);

  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(element.textContent.trim());
    element.dispatchEvent(new Event('copied'));
    button.firstChild.data = TEXTS.textCopied;
    announce(TEXTS.textCopied);
    setTimeout(() => {
      button.firstChild.data = TEXTS.textCopy;
    }, 2000);
  });
}

/**
 * Shows a time in local time. A value of a list says how long ago or ahead it is, and the exact time
 * on hover and to screen readers.
 */
function showLocally(element) {
  const time = new Date(element.dateTime);
  if (Number.isNaN(time.getTime())) return;
  const format = (options) => new Intl.DateTimeFormat(LOCALE, options).format(time);
  const inUtc = element.textContent.trim();
  const parent = element.parentElement;
  const isValue = parent.matches('.log-when') || (parent.matches('dd') && parent.textContent.trim() === inUtc);
  element.title = `${format({ dateStyle: 'full', timeStyle: 'long' })} (${inUtc})`;
  const exact = format({ dateStyle: 'medium', timeStyle: 'short' });
  if (isValue) {
    const forReaders = document.createElement('span');
    forReaders.className = 'unseen';
    forReaders.textContent = ` (${exact})`;
    element.replaceChildren(fromNow(time) ?? format({ dateStyle: 'medium' }), forReaders);
  } else {
    element.textContent = exact;
  }
}

/** `3 hours ago`, `in 30 days`; undefined for a time further away, of which the date says more. */
function fromNow(time) {
  const seconds = (time - Date.now()) / 1000;
  if (Math.abs(seconds) > 30.5 * 86_400) return undefined;
  const units = [
    ['day', 86_400],
    ['hour', 3_600],
    ['minute', 60],
  ];
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 0];
  const format = new Intl.RelativeTimeFormat(LOCALE, { numeric: 'auto' });
  return size === 0 ? TEXTS.textNow : format.format(Math.round(seconds / size), unit);
}

/** Removes a secret when the user leaves its page, because Back may show the page as it was. */
function forgetSecrets(elements) {
  if (elements.length === 0) return;
  const forget = () => {
    for (const element of elements) {
      if (element.tagName === 'INPUT') element.value = '';
      else element.textContent = TEXTS.textShownOnce;
    }
  };
  window.addEventListener('pagehide', forget);
  window.addEventListener('pageshow', (event) => {
    if (event.persisted) forget();
  });
}

/** Asks for confirmation before the user leaves a page whose secret they have not copied. */
function warnOfUncopied(elements) {
  if (!document.querySelector('[data-secret]')) return;
  let isCopied = false;
  const stopAsking = () => {
    isCopied = true;
  };
  for (const element of elements) {
    // By the button, or by the keyboard from the selected text.
    element.addEventListener('copied', stopAsking);
    element.addEventListener('copy', stopAsking);
  }
  document.querySelector('[data-copied]')?.addEventListener('click', stopAsking);
  window.addEventListener('beforeunload', (event) => {
    if (!isCopied) event.preventDefault();
  });
}

/** Asks for confirmation before the user leaves a page with unsent changes in its form. */
function warnOfUnsaved(form) {
  let isSent = false;
  form.addEventListener('submit', () => {
    isSent = true;
  });
  window.addEventListener('beforeunload', (event) => {
    // Buttons are among the elements, and have no default value.
    const isTyped = ({ value, defaultValue = value }) => value !== defaultValue;
    const isChanged = [...form.elements].some(isTyped);
    if (isChanged && !isSent) event.preventDefault();
  });
}

/** Shows and handles the forms for passkeys, if the browser supports them. */
function offerPasskeys(forms) {
  if (forms.length === 0 || !window.PublicKeyCredential?.parseRequestOptionsFromJSON) return;
  const minutesUntilRenewal = 5;
  let offered;

  for (const element of document.querySelectorAll('[data-without-passkeys]')) element.hidden = true;
  for (const element of document.querySelectorAll('[data-passkeys]')) element.hidden = false;
  for (const form of forms) form.addEventListener('submit', (event) => askFirst(event, form));
  // After Back, the browser may have kept the sent value.
  window.addEventListener('pageshow', () => {
    for (const form of forms) answerOf(form).value = '';
  });
  if (document.querySelector('input[autocomplete~=webauthn]')) offerWhileTyping(forms[0]);

  function answerOf(form) {
    return form.querySelector('[data-passkey-answer]');
  }

  async function askFirst(event, form) {
    if (answerOf(form).value !== '') return;
    event.preventDefault();
    if (form.dataset.asking) return;
    form.dataset.asking = 'true';
    sayProblem(form, '');
    // A browser allows only one passkey request at a time.
    offered?.abort();
    try {
      await send(form, await ask(form, {}));
    } catch (error) {
      sayProblem(form, problemOf(error, form));
    } finally {
      delete form.dataset.asking;
    }
  }

  /** Offers passkeys in the browser's suggestions for the email field (conditional UI). */
  async function offerWhileTyping(form) {
    if (!(await PublicKeyCredential.isConditionalMediationAvailable?.())) return;
    offered = new AbortController();
    const { signal } = offered;
    // A challenge expires after some minutes, but a page may stay open for hours.
    const renewal = setTimeout(() => {
      offered.abort();
      offerWhileTyping(form);
    }, minutesUntilRenewal * 60_000);
    signal.addEventListener('abort', () => clearTimeout(renewal));
    try {
      await send(form, await ask(form, { mediation: 'conditional', signal }));
    } catch {
      // The user did not start this request, so show no error.
    }
  }

  async function ask(form, how) {
    const { passkey, passkeyMade } = form.dataset;
    const answer = await fetch(passkey ?? passkeyMade, { headers: { accept: 'application/json' } });
    // The user has signed out, or the sign-in is no longer recent: the reloaded page asks for it.
    if (answer.redirected || answer.status === 403) location.reload();
    if (answer.redirected || !answer.ok) throw new Error(`status ${answer.status}`);
    const options = await answer.json();
    return passkeyMade === undefined
      ? navigator.credentials.get({
          ...how,
          publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options),
        })
      : navigator.credentials.create({
          publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options),
        });
  }

  function send(form, credential) {
    answerOf(form).value = JSON.stringify(credential.toJSON());
    form.requestSubmit();
  }

  function problemOf({ name }, form) {
    const { known, failed, none } = form.querySelector('[data-passkey-problem]').dataset;
    if (name === 'InvalidStateError') return known ?? failed;
    return name === 'NotAllowedError' ? none : failed;
  }

  function sayProblem(form, sentence) {
    const problem = form.querySelector('[data-passkey-problem]');
    problem.textContent = sentence;
    problem.hidden = sentence === '';
    if (sentence !== '') announce(sentence);
  }
}

/** Posts to the URL in `data-keep-alive` while the page is visible and in use. */
function keepSessionAlive(element) {
  const minutes = 5;
  let wasUsed = false;

  for (const sign of ['pointerdown', 'keydown', 'scroll']) {
    document.addEventListener(
      sign,
      () => {
        wasUsed = true;
      },
      { passive: true },
    );
  }

  const timer = setInterval(async () => {
    if (!wasUsed || document.visibilityState !== 'visible') return;
    wasUsed = false;
    try {
      const answer = await fetch(element.dataset.keepAlive, { method: 'POST' });
      // The session has ended: the next click leads to the sign-in page.
      if (answer.status === 401) clearInterval(timer);
    } catch {
      // Possibly offline for a moment: the next round retries.
    }
  }, minutes * 60_000);
}

/** `<button>Show<span class="unseen"> password</span></button>` */
function quietButton(verb, object) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'button quiet';
  const unseen = document.createElement('span');
  unseen.className = 'unseen';
  unseen.textContent = ` ${object}`;
  button.append(verb, unseen);
  return button;
}

/** Announces a text to screen readers only. */
function announce(sentence) {
  let status = document.querySelector('.unseen[role=status]');
  if (!status) {
    status = document.createElement('p');
    status.className = 'unseen';
    status.setAttribute('role', 'status');
    document.body.append(status);
  }
  status.textContent = sentence;
}
