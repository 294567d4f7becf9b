package git

import (
	"container/list"

	"github.com/go-git/go-git/v5/plumbing"
)

// lru caches values by object name. It removes the least recently used values when the total cost exceeds
// limit. It is not safe for concurrent use.
type lru[V any] struct {
	limit, used int64
	order       *list.List
	items       map[plumbing.Hash]*list.Element
}

type lruItem[V any] struct {
	key  plumbing.Hash
	val  V
	cost int64
}

func newLRU[V any](limit int64) *lru[V] {
	return &lru[V]{limit: limit, order: list.New(), items: map[plumbing.Hash]*list.Element{}}
}

func (c *lru[V]) get(key plumbing.Hash) (V, bool) {
	e, ok := c.items[key]
	if !ok {
		var zero V
		return zero, false
	}
	c.order.MoveToFront(e)
	return e.Value.(lruItem[V]).val, true
}

// put adds a value. A key that is present keeps its value, because objects are immutable.
func (c *lru[V]) put(key plumbing.Hash, val V, cost int64) {
	if _, ok := c.items[key]; ok || cost > c.limit {
		return
	}
	c.items[key] = c.order.PushFront(lruItem[V]{key, val, cost})
	for c.used += cost; c.used > c.limit; {
		e := c.order.Back()
		item := c.order.Remove(e).(lruItem[V])
		delete(c.items, item.key)
		c.used -= item.cost
	}
}
