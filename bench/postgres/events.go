package main

import "time"

// event is something that happens at a time of the simulation. Events at the same time happen in the order in which they were added.
type event struct {
	at    time.Duration
	order int
	do    func()
}

// events is a heap for the package container/heap. Its first element is the event that happens next.
type events []event

func (l events) Len() int      { return len(l) }
func (l events) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *events) Push(x any)   { *l = append(*l, x.(event)) }

// Less reports whether event i happens before event j.
func (l events) Less(i, j int) bool {
	return l[i].at < l[j].at || l[i].at == l[j].at && l[i].order < l[j].order
}

// Pop removes the last element.
func (l *events) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// fifo is a queue.
type fifo[T any] struct {
	list []T
	head int // index of the first element
}

func (q *fifo[T]) len() int { return len(q.list) - q.head }
func (q *fifo[T]) add(x T)  { q.list = append(q.list, x) }

// The method "next" removes the first element and returns it.
func (q *fifo[T]) next() T {
	x := q.list[q.head]
	if q.head++; q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	}
	return x
}
