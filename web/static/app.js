// The pages work without this script.
'use strict'
const $ = (query, from = document) => from.querySelector(query)
const $$ = (query, from = document) => [...from.querySelectorAll(query)]
const base = document.body.dataset.base
const remembered = key => { try { return localStorage['runner-' + key] } catch {} }
const remember = (key, value) => { try { localStorage['runner-' + key] = value } catch {} }
const part = { Accept: 'text/x-fragment' }

// The token is in the fragment.
const token = /^#t=([\w-]+)$/.exec(location.hash)
if (token) {
	const form = $('form.login')
	history.replaceState(null, '', location.pathname + location.search)
	if (form) {
		form.elements.token.value = token[1]
		form.submit()
	}
}

const root = document.documentElement
root.dataset.theme = remembered('theme') || ''
$('#theme').onclick = () => {
	const now = root.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')
	remember('theme', root.dataset.theme = now === 'dark' ? 'light' : 'dark')
}
$('.tools').hidden = false

// After a change the page loads itself and replaces its live regions.
const parser = new DOMParser()
let stream, timer, busy, again
const inUse = region => {
	const selection = getSelection()
	return region.contains(document.activeElement) || region.open || region.matches(':active,:has([name=id]:checked)') ||
		(!selection.isCollapsed && region.contains(selection.anchorNode))
}
const ids = page => $$('[data-live]', page).map(r => r.id).join()
const replace = text => {
	const fresh = parser.parseFromString(text, 'text/html')
	if (ids(document) !== ids(fresh) && !$$('[data-live],dialog').some(inUse)) return location.reload()
	document.title = fresh.title
	for (const region of $$('[data-live]')) {
		const next = fresh.getElementById(region.id)
		if (next && next.dataset.follow) location.reload()
		if (!next || inUse(region) || next.isEqualNode(region)) continue
		const open = $$('details', region).map(d => d.open)
		region.replaceWith(next)
		$$('details', next).forEach((d, i) => { d.open = open[i] })
	}
	ready()
}
const refresh = async () => {
	if (busy) { again = true; return }
	busy = true
	try {
		const answer = await fetch(location.pathname + location.search, { headers: part })
		if (answer.ok) replace(await answer.text())
		else if (answer.status === 401) location.reload()
	} catch { $('#stale').textContent = 'no response' }
	busy = false
	if (again) { again = false; setTimeout(refresh, 1000) }
}
const poll = on => { clearInterval(timer); timer = on ? setInterval(refresh, 5000) : undefined }
const connect = () => {
	if (stream || !$('[data-live]:not(#stale)')) return
	stream = new EventSource(base + '/events')
	stream.addEventListener('rev', refresh)
	stream.onopen = () => poll(false)
	stream.onerror = () => { if (!timer) poll(true) }
}
const disconnect = () => { if (stream) stream.close(); stream = undefined; poll(false); unfollow() }
let live = remembered('live') !== 'off'
const updateLive = fresh => {
	const on = live && !document.hidden
	$('#live').setAttribute('aria-pressed', live)
	$('#live').firstElementChild.textContent = live ? '●' : '‖'
	if (!on) return disconnect()
	if (fresh) refresh()
	connect()
	follow()
}
$('#live').onclick = () => { live = !live; remember('live', live ? 'on' : 'off'); updateLive(true) }
document.addEventListener('visibilitychange', () => updateLive(true))
addEventListener('pagehide', disconnect)

let reading
const unfollow = () => { if (reading) reading.abort(); reading = undefined }
const follow = async () => {
	const box = $('[data-follow]')
	if (!box || reading) return
	const mine = reading = new AbortController()
	const out = $('.out', box), stay = $('#follow')
	let first = true, text = ''
	stay.hidden = stay.nextElementSibling.hidden = false
	try {
		const answer = await fetch(box.dataset.follow, { headers: part, signal: mine.signal })
		const reader = answer.body.getReader(), decoder = new TextDecoder()
		for (;;) {
			const { done, value } = await reader.read()
			if (done) break
			text += decoder.decode(value, { stream: true })
			const end = text.lastIndexOf('\x1e')
			if (end < 0) continue
			if (first) first = out.replaceChildren()
			for (const batch of text.slice(0, end).split('\x1e')) {
				$$('.part', out).forEach(line => line.remove())
				out.insertAdjacentHTML('beforeend', batch)
			}
			text = text.slice(end + 1)
			while (out.children.length > 5000) out.firstChild.remove()
			if (stay.checked) out.scrollTop = out.scrollHeight
		}
		location.reload()
	} catch { if (!mine.signal.aborted) setTimeout(() => { unfollow(); follow() }, 3000) }
}

// A question of the server opens a dialog.
const ask = $('#ask')
const post = async (url, body) => {
	const answer = await fetch(url, { method: 'POST', body, headers: part, redirect: 'manual' })
	if (!answer.status) return location.assign(body.get('back')) // a redirect
	const page = parser.parseFromString(await answer.text(), 'text/html')
	ask.replaceChildren(...$('main', page).childNodes)
	if (!ask.open) ask.showModal()
}
document.addEventListener('submit', event => {
	const form = event.target
	if (form.method !== 'post' || form.classList.contains('login')) return
	event.preventDefault()
	const button = event.submitter
	post(button.getAttribute('formaction') || form.getAttribute('action'), new URLSearchParams(new FormData(form, button)))
})
document.addEventListener('click', event => {
	if (event.target.closest('[data-close]') && ask.open) { event.preventDefault(); ask.close() }
	const copy = event.target.closest('[data-copy]')
	if (copy) navigator.clipboard.writeText($('#again').textContent)
})

const boxes = () => $$('[name=id]')
const count = () => {
	const n = boxes().filter(box => box.checked).length, label = $('#selected')
	if (!label) return
	label.textContent = n ? n + ' selected' : 'none selected'
	$$('.bar button').forEach(button => { button.disabled = !n })
	$('#all').checked = n > 0 && n === boxes().length
}
document.addEventListener('change', event => {
	if (event.target.id === 'all') boxes().forEach(box => { box.checked = event.target.checked })
	if (event.target.id === 'nokeys') remember('keys', event.target.checked ? 'off' : 'on')
	count()
})
const ready = () => {
	if ($('#all')) $('#all').hidden = false
	$$('[data-copy]').forEach(button => { button.hidden = !navigator.clipboard })
	count()
}

let row, afterG
$('#help').onclick = () => $('#keys').showModal()
$('#nokeys').checked = remembered('keys') === 'off'
const move = by => {
	const rows = $$('tbody tr')
	const at = rows.findIndex(r => r.id && r.id === row || r.classList.contains('on'))
	const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))]
	if (!next) return
	rows.forEach(r => r.classList.remove('on'))
	next.classList.add('on')
	row = next.id
	next.scrollIntoView({ block: 'nearest' })
	const link = $('a', next)
	if (link) link.focus({ preventScroll: true })
}
const act = name => {
	const id = $('tr.on [name=id]') || $('#head [name=id]')
	if (!id) return
	post(base + '/actions/' + name, new URLSearchParams({ id: id.value, ask: 1, back: location.pathname + location.search }))
}
const keys = {
	'/': () => ($('.query input') || $('#q')).focus(),
	j: () => move(1), k: () => move(-1),
	x: () => { const box = $('tr.on [name=id]'); if (box) { box.checked = !box.checked; count() } },
	r: () => act('retry'), c: () => act('cancel'),
	p: () => $('#live').click(), '?': () => $('#keys').showModal()
}
const pages = { o: '/', t: '/tasks', s: '/schedules' }
document.addEventListener('keydown', event => {
	const typing = event.target.matches('input:not([type=checkbox]),textarea,select')
	if (event.key === 'Escape' && typing) event.target.blur()
	if (typing || event.ctrlKey || event.metaKey || event.altKey || $('dialog[open]') || $('#nokeys').checked) return
	const go = afterG && pages[event.key]
	afterG = event.key === 'g'
	if (go) location = base + go
	else if (keys[event.key]) { event.preventDefault(); keys[event.key]() }
})

ready()
updateLive(false)
