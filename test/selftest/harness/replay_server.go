package harness

import "slices"

// endedBelow says that at a time, in ms, all transactions with lower numbers
// than oldest had ended.
type endedBelow struct{ at, oldest int64 }

// serverClaim is one claim that a transaction on a server has made.
type serverClaim struct {
	worker, queue string
	xid           int64
}

// noteTransaction records which transactions had ended at the time of an event,
// and which ones claimed tasks. It keeps at least the last 2000 records of each
// sort (lookahead).
func (r *replay) noteTransaction(e event) {
	if e.xid == 0 {
		return
	}
	if r.ended = append(r.ended, endedBelow{e.at, e.oldest}); len(r.ended) > 2*lookahead {
		r.ended = append(r.ended[:0], r.ended[lookahead:]...)
	}
	if e.claims() {
		if r.serverClaims = append(r.serverClaims, serverClaim{e.worker, r.task(e.id).queue, e.xid}); len(r.serverClaims) > 2*lookahead {
			r.serverClaims = append(r.serverClaims[:0], r.serverClaims[lookahead:]...)
		}
	}
}

// concurrent reports whether another transaction may have hidden the pending
// task p from the claim c.
//
// In a file this can't happen. On a server, transactions share the write lock
// if their writes don't depend on their reads. A claim doesn't see a task whose
// insert isn't committed yet, and skips one that another claim has locked. It
// locks the first tasks of each job, but may take only some of them. The
// history has the events of concurrent transactions in any order. So concurrent
// returns false only if all of this is true:
//   - The transaction that made p pending had certainly ended when c began.
//   - The next change of p began after c.
//   - No claim of another worker from the same queue ran at the same time as c.
func (r *replay) concurrent(p *taskHistory, c *claim, ahead []event) bool {
	if p.setBy == 0 {
		return false
	}

	changed := false // whether p has changed after the claim
	for _, e := range ahead {
		if e.op != "update" || e.began > c.claimedAt {
			changed = changed || e.op == "update" && e.id == p.id
			continue
		}
		if !changed && e.id == p.id || e.claims() && e.worker != c.worker && r.task(e.id).queue == p.queue {
			return true
		}
	}

	for _, other := range r.serverClaims {
		if other.queue == p.queue && other.worker != c.worker && !r.hadEnded(other.xid, c.began) {
			return true
		}
	}

	return !r.hadEnded(p.setBy, c.began)
}

// hadEnded reports whether a transaction had certainly ended at a time, in ms.
func (r *replay) hadEnded(xid, at int64) bool {
	return slices.ContainsFunc(r.ended, func(e endedBelow) bool { return e.at < at && e.oldest > xid })
}
