// The pages work without this script.
'use strict'
const $ = (query, from = document) => from.querySelector(query)
const $$ = (query, from = document) => [...from.querySelectorAll(query)]
const base = document.body.dataset.base
const remembered = key => { try { return localStorage['runner-' + key] } catch {} }
const remember = (key, value) => { try { localStorage['runner-' + key] = value } catch {} }
const part = { Accept: 'text/x-fragment' }
// Limits in milliseconds: of a stream without an event, until a page says that it waits for an answer, and of the wait for an answer.
const limits = { silence: 14000, slow: 5000, most: 60000 }
// load returns a response and its text. It calls late if the response takes long.
const load = async (url, options, late = () => {}, mine = new AbortController()) => {
	const slow = setTimeout(late, limits.slow), most = setTimeout(() => mine.abort(), limits.most)
	try {
		const answer = await fetch(url, { ...options, signal: mine.signal }), text = await answer.text()
		offline(answer.status === 503)
		return [answer, text]
	} finally { clearTimeout(slow); clearTimeout(most) }
}

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

const ask = $('#ask')
// After a change the page loads itself and replaces its live regions.
const parser = new DOMParser()
let stream, timer, releasing, busy, again
const touched = part => {
	const selection = getSelection()
	return part.contains(document.activeElement) || part.matches(':active') || (!selection.isCollapsed && part.contains(selection.anchorNode))
}
const inUse = region => touched(region) || region.open || region.matches(':has([name=id]:checked)')
// A region that the reader points at or uses holds still: its rows do not move. Its cells change.
const rows = 'tr[id],.problem[id]'
const shape = region => $$('tr,.problem', region).map(row => row.id).join()
let held = [], force // held: regions that hold still
const hold = (region, next) => {
	for (const row of $$(rows, region)) {
		const fresh = [...next.querySelector('#' + CSS.escape(row.id))?.children || []]
		;[...row.children].forEach((cell, i) => { if (fresh[i] && !touched(cell) && !cell.isEqualNode(fresh[i])) cell.replaceWith(fresh[i]) })
	}
	held.push(region)
}
const sign = () => {
	$('#live').classList.toggle('amber', lost || held.length > 0)
	$('#live').lastElementChild.textContent = lost ? 'offline' : held.length ? 'held' : 'live'
}
const release = () => { if (live && held.some(region => !inUse(region) && !region.matches(':hover'))) refresh() }
for (const kind of ['mouseout', 'focusout', 'change']) {
	document.addEventListener(kind, () => { if (held.length) { clearTimeout(releasing); releasing = setTimeout(release, 300) } })
}
const ids = page => $$('[data-live]', page).map(r => r.id).join()
const textsOf = page => Object.fromEntries($$('[data-live]', page).map(region => [region.id, region.outerHTML]))
let texts = textsOf(document) // the regions as the server has sent them
const replace = text => {
	const fresh = parser.parseFromString(text, 'text/html')
	document.title = fresh.title
	const box = $('#box'), next = fresh.getElementById('box')
	if (ids(document) !== ids(fresh) && !$$('[data-live],dialog').some(inUse)) {
		texts = textsOf(fresh)
		$('main').replaceChildren(...$('main', fresh).childNodes)
	} else if (box && next.dataset.attempt && box.dataset.attempt !== next.dataset.attempt && atEnd && !$('#log').contains(getSelection().anchorNode)) {
		$('#log').hidden = false
		swapLog(next)
	}
	const known = $$('.problem').map(problem => problem.id), checked = $$('[name=id]:checked').map(box => box.value)
	let label = ''
	// What is under the mouse stays there if a part above it grows.
	const under = $$('main [data-live]').find(region => region.matches(':hover'))?.id
	const place = () => document.getElementById(under)?.getBoundingClientRect().top
	const before = place()
	held = []
	for (const region of $$('[data-live]')) {
		const next = fresh.getElementById(region.id)
		if (!next || texts[region.id] === next.outerHTML) continue
		const moves = shape(region) !== shape(next)
		if (!force && (inUse(region) || (moves && region.matches(':hover')))) {
			delete texts[region.id]
			if (next.isEqualNode(region)) continue
			if (moves && region.id === 'rows') {
				const news = $$('tr[id]', next).filter(row => !document.getElementById(row.id)).length
				label = (news ? news + ' new' : 'changed') + ' ↑'
			}
			hold(region, next)
			if (!moves && $(rows, region)) held.pop()
			continue
		}
		const open = $$('details', region).map(d => d.open), places = $$('.graph', region).map(g => [g.scrollLeft, g.scrollTop])
		texts[region.id] = next.outerHTML
		region.replaceWith(next)
		$$('.graph', next).forEach((g, i) => places[i] && g.scrollTo(...places[i]))
		$$('details', next).forEach((d, i) => { d.open = open[i] })
	}
	if (under && !force) scrollBy(0, place() - before)
	if (force) boxes().forEach(box => { box.checked = checked.includes(box.value) })
	force = false
	const news = $$('.problem').filter(problem => !known.includes(problem.id))
	if (news.length) $('#news').textContent = news.map(problem => $('p', problem).textContent).join('. ')
	if ($('#fresh')) { $('#fresh').textContent = label; $('#fresh').hidden = !label }
	sign()
	ready()
}
// clock returns the time of day in the zone of the page.
const clock = () => new Date(Date.now() + document.body.dataset.offset * 1000).toISOString().slice(11, 19)
let lost = false // whether the server does not answer
const offline = now => {
	if (lost === now) return
	lost = now
	sign()
	$('#stale').textContent = now ? 'The server has not answered since ' + clock() + '. This page tries again.' : ''
}
const refresh = async () => {
	if (busy) { again = true; return }
	busy = true
	try {
		const [answer, text] = await load(location.pathname + location.search, { headers: part }, () => offline(true))
		if (answer.ok) replace(text)
		else if (answer.status === 503) again = true
		else if (answer.status === 401 && !ask.open && !sending) location.reload()
	} catch { offline(true) }
	busy = false
	if (again) { again = false; setTimeout(() => stream && refresh(), 1000) }
}
const poll = on => { clearInterval(timer); timer = on ? setInterval(refresh, 5000) : undefined }
const connect = () => {
	if (stream || !$('[data-live]')) return
	stream = new EventSource(base + '/events')
	heard = Date.now()
	stream.addEventListener('rev', () => { heard = Date.now(); refresh() })
	stream.addEventListener('alive', () => { heard = Date.now() })
	stream.onopen = () => { poll(false); if (lost) refresh() }
	stream.onerror = () => { if (!timer) { poll(true); refresh() } }
}
// A connection can break without an error. Then the page opens another stream.
let heard = 0 // time of the last event
setInterval(() => { if (stream && Date.now() - heard > limits.silence) { disconnect(); updateLive(true); poll(true) } }, 1000)
const disconnect = () => { if (stream) stream.close(); stream = undefined; poll(false); unfollow() }
let live = remembered('live') !== 'off'
const updateLive = fresh => {
	if (!$('#live')) return // before the user has signed in
	const on = live && !document.hidden
	$('#live').setAttribute('aria-pressed', live)
	$('#live').firstElementChild.textContent = live ? '●' : '‖'
	if (!on) return disconnect()
	if (fresh) refresh()
	connect()
	follow()
}
if ($('#live')) $('#live').onclick = () => { live = !live; remember('live', live ? 'on' : 'off'); updateLive(true) }
document.addEventListener('visibilitychange', () => updateLive(true))
addEventListener('pagehide', disconnect)
addEventListener('pageshow', event => { if (event.persisted) location.reload() })

// The output of an attempt. While the reader is at its end, the end stays in view. Otherwise nothing moves, and a button counts the new
// lines.
const most = 100000
let reading, atEnd = true, unseen = 0
const log = () => $('#box .out')
const toEnd = () => { const out = log(); if (out) { atEnd = true; unseen = 0; $('#new').hidden = true; out.scrollTop = out.scrollHeight } }
const openLog = () => {
	const out = log()
	if (!out) return
	out.classList.remove('start')
	toEnd()
	out.onscroll = () => {
		atEnd = out.scrollTop + out.clientHeight >= out.scrollHeight - 8
		if (atEnd) { unseen = 0; $('#new').hidden = true }
	}
	$('#new').onclick = toEnd
}
const addLines = (out, html) => {
	let block = out.lastElementChild
	let added = 0
	while (block.lastElementChild?.matches('.part')) { block.lastElementChild.remove(); added-- }
	if (block.children.length > 200) out.append(block = Object.assign(document.createElement('span'), { className: 'b' }))
	const before = block.children.length
	block.insertAdjacentHTML('beforeend', html)
	added += block.children.length - before
	out.lines = (out.lines || before) + added
	const shown = $('#shown'), n = shown && parseInt(shown.textContent.replace(/,/g, '')) + added
	if (shown && added) shown.textContent = n.toLocaleString('en') + (n === 1 ? ' line' : ' lines')
	while (out.lines > most) { // forget the oldest lines, without a move of the others
		const first = out.firstElementChild, height = out.scrollHeight
		out.lines -= first.children.length
		first.remove()
		if (!atEnd) out.scrollTop -= height - out.scrollHeight
	}
	if (atEnd) out.scrollTop = out.scrollHeight
	else if (unseen += added) {
		$('#new').textContent = unseen.toLocaleString('en') + ' new lines ↓'
		$('#new').hidden = false
	}
}
const unfollow = () => { if (reading) reading.abort(); reading = undefined }
const follow = async () => {
	const box = $('#box[data-follow]')
	if (!box || reading) return
	const mine = reading = new AbortController(), out = log()
	let text = ''
	try {
		const answer = await fetch(box.dataset.follow, { headers: part, signal: mine.signal })
		if (!answer.ok) throw answer.status
		const reader = answer.body.getReader(), decoder = new TextDecoder()
		for (;;) {
			const { done, value } = await reader.read()
			if (done) break
			text += decoder.decode(value, { stream: true })
			const batches = text.split('\x1e')
			text = batches.pop()
			for (const batch of batches) {
				const [html, cursor] = batch.split('\x1f')
				if (cursor === 'end') { delete box.dataset.follow; continue }
				addLines(out, html)
				box.dataset.follow = box.dataset.follow.replace(/from=.*/, 'from=' + cursor)
			}
		}
	} catch { if (mine.signal.aborted) return }
	reading = undefined
	if (!box.dataset.follow) refresh()
	setTimeout(box.dataset.follow ? follow : refresh, 1000)
}
// swapLog shows another attempt.
const swapLog = fresh => {
	unfollow()
	$('#box').replaceWith(fresh)
	openLog()
	if (live && !document.hidden) follow()
}
// A question of the server opens a dialog, and so does a failure.
let sending, tries = 0 // sending: the action that waits for an answer
const show = (...nodes) => {
	ask.replaceChildren(...nodes)
	if (!$('[data-close],.login', ask)) {
		ask.insertAdjacentHTML('beforeend', '<p class="row"><button type="button" data-again>Try again</button> <button type="button" data-close>Close</button></p>')
	}
	if (!ask.open) ask.showModal()
	$('[autofocus]', ask)?.focus()
}
const say = (title, text) => show(Object.assign(document.createElement('h1'), { textContent: title }),
	Object.assign(document.createElement('p'), { textContent: text, role: 'alert' }))
const failed = text => say('The action failed', text)
const post = async (url, body, button) => {
	if (sending) return
	const mine = sending = new AbortController(), label = button?.textContent
	if (button) { button.disabled = true; button.textContent = 'sending…' }
	if (!body.has('token')) repeat = () => { body.set('ask', 1); body.delete('confirmed'); body.delete('set'); post(url, body) }
	tries++
	try {
		const [answer, text] = await load(url, { method: 'POST', body, headers: part, redirect: 'manual' }, () => {
			offline(true)
			say('Still sending', 'The server has not answered try ' + tries + ' yet. The page waits for the answer. Before another try acts, it asks you.')
		}, mine)
		tries = 0
		if (!answer.status) { // a redirect
			if (!body.has('token')) return location.assign(body.get('back') || location)
			body = undefined
		} else {
			const main = $('main', parser.parseFromString(text, 'text/html'))
			if (main) show(...main.childNodes)
			else failed('The server refuses it (status ' + answer.status + ').')
		}
	} catch {
		if (sending === mine) {
			offline(true)
			failed('The server does not answer. The action may be done: look at the page before you try again.')
		}
	} finally { if (button) { button.disabled = false; button.textContent = label } }
	if (sending === mine) sending = undefined
	if (!body) repeat()
}
let repeat = () => location.reload()
const tryAgain = () => {
	const old = sending
	sending = undefined
	if (old) old.abort()
	repeat()
}
document.addEventListener('submit', event => {
	const form = event.target
	if (form.method !== 'post' || form.matches('main .login')) return
	event.preventDefault()
	const button = event.submitter
	post(button?.getAttribute('formaction') || form.getAttribute('action'), new URLSearchParams(new FormData(form, button)), button)
})
document.addEventListener('click', event => {
	if (event.target.closest('[data-close]') && ask.open) { event.preventDefault(); ask.close() }
	if (event.target.closest('[data-again]')) tryAgain()
	if (event.target.closest('#fresh')) { force = true; scrollTo(0, 0); refresh() }
	const copy = event.target.closest('[data-copy]')
	if (copy) navigator.clipboard.writeText($('#again').textContent)
})

const boxes = () => $$('[name=id]')
const count = () => {
	const chosen = boxes().filter(box => box.checked), n = chosen.length, label = $('#selected')
	if (!label) return
	label.textContent = n ? n + ' selected' : 'none selected'
	const can = chosen.map(box => $('[data-can]', box.closest('tr')).dataset.can).join(' ')
	$$('#selection button').forEach(button => { button.disabled = !can.includes(button.dataset.verb) })
	$('#all').checked = n > 0 && n === boxes().length
}
document.addEventListener('change', event => {
	if (event.target.id === 'all') boxes().forEach(box => { box.checked = event.target.checked })
	if (event.target.id === 'nokeys') remember('keys', event.target.checked ? 'off' : 'on')
	count()
})
const ready = () => {
	if ($('#all')) $('#all').parentNode.hidden = false
	$$('[data-copy]').forEach(button => { button.hidden = !navigator.clipboard })
	count()
}

let row, afterG
if ($('#help')) $('#help').onclick = () => $('#keys').showModal()
$('#nokeys').checked = remembered('keys') === 'off'
const move = by => {
	const rows = $$('tbody tr:not(details tr)')
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
	const chosen = $$('[name=id]:checked'), one = $('tr.on [name=id]') || $('#head [name=id]')
	if (!chosen.length && !one) return
	const body = new URLSearchParams({ ask: 1, back: location.pathname + location.search })
	for (const box of chosen.length ? chosen : [one]) body.append('id', box.value)
	post(base + '/actions/' + name, body)
}
const keys = {
	'/': () => ($('.query input') || $('#q')).focus(),
	j: () => move(1), k: () => move(-1),
	x: () => { const box = $('tr.on [name=id]'); if (box) { box.checked = !box.checked; count() } },
	r: () => act('retry'), c: () => act('cancel'), d: () => act('delete'),
	p: () => $('#live').click(), '?': () => $('#keys').showModal()
}
const pages = { o: '/', t: '/tasks', s: '/schedules', w: '/workers' }
document.addEventListener('keydown', event => {
	const typing = event.target.matches('input:not([type=checkbox]),textarea,select')
	if (event.key === 'Escape' && typing) event.target.blur()
	if (typing || event.ctrlKey || event.metaKey || event.altKey || $('dialog[open]') || $('#nokeys').checked || !$('#live')) return
	const go = afterG && pages[event.key]
	afterG = event.key === 'g'
	if (go) location = base + go
	else if (keys[event.key]) { event.preventDefault(); keys[event.key]() }
})

// The arrow keys move from bar to bar of a chart.
document.addEventListener('keydown', event => {
	const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key], bar = event.target.closest('.bars a')
	const next = by && bar && $$('a', bar.closest('svg')).at($$('a', bar.closest('svg')).indexOf(bar) + by)
	if (next) { event.preventDefault(); next.focus() }
})
// The user can choose the zone of the browser, or type another zone.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
if (zone && $('#local') && !$$('.zone a,.zone b').some(other => other.textContent === zone)) {
	$('#local').href += encodeURIComponent(zone)
	$('#local').title = zone
	$('#local').hidden = false
}
document.addEventListener('focusin', event => {
	const list = event.target.list
	if (list && !list.options.length) list.append(...Intl.supportedValuesOf('timeZone').map(name => new Option(name)))
})

// A drawing of dependencies begins at the task of the page.
$$('.graph').forEach(graph => {
	const at = $('[aria-current]', graph).getBBox()
	graph.scrollTo(at.x + (at.width - graph.clientWidth) / 2, at.y + (at.height - graph.clientHeight) / 2)
})
ready()
openLog()
updateLive(false)
