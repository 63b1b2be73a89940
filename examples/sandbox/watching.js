// Appends new messages of the subscription to the page, which shows the earlier ones.
const log = document.querySelector('[role="log"]');
const source = new EventSource(`/watching?after=${log.dataset.shown}`);

source.addEventListener('message', ({ data }) => {
  const { at, text } = JSON.parse(data);
  const line = document.createElement('p');
  const time = document.createElement('time');
  time.textContent = at;
  line.append(time, ` ${text}`);
  log.append(line);
  log.scrollTop = log.scrollHeight;
});
source.addEventListener('over', () => source.close());
