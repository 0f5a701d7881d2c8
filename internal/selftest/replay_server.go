package selftest

// endedBelow records that at the time at, in ms, all transactions with lower numbers than oldest had ended.
type endedBelow struct{ at, oldest int64 }

// noteTransaction records which transactions had ended at the time of an event. It keeps the records of at least as
// many events as the replay looks ahead.
func (r *replay) noteTransaction(e event) {
	if e.xid == 0 {
		return
	}
	if r.ended = append(r.ended, endedBelow{e.at, e.oldest}); len(r.ended) > 2*lookahead {
		r.ended = append(r.ended[:0], r.ended[lookahead:]...)
	}
}

// concurrent reports whether another transaction may have hidden the pending task p from the claim c.
//
// In a file this cannot happen. On a server, transactions can share the write lock if their writes do not depend on their reads. A claim
// does not see a task whose insert is not committed yet, and it skips a task that another claim has locked. The events of such transactions
// come in any order. So concurrent returns false only if two conditions are met: the transaction that made p pending had certainly ended
// when the claim began, and the next change of p began after the claim.
func (r *replay) concurrent(p *taskHistory, c *claim, ahead []event) bool {
	if p.setBy == 0 {
		return false
	}
	for _, e := range ahead {
		if e.op == "update" && e.id == p.id {
			if e.began <= c.claimedAt {
				return true
			}
			break
		}
	}
	for _, e := range r.ended {
		if e.at < c.began && e.oldest > p.setBy {
			return false
		}
	}
	return true
}
