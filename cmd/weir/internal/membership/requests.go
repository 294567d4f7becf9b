package membership

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Ask is a hint: something that any member that can should do soon. A lost one costs only time.
type Ask struct {
	// Source names a source to read, and Pull the number of a pull request with news, if any; or a
	// pass over Targets is due.
	Source  string   `json:"source,omitempty"`
	Pulls   bool     `json:"pulls,omitempty"`
	Pull    int64    `json:"pull,omitempty"`
	Targets []string `json:"targets,omitempty"`
	// Heard is the text of a comment on the pull request as a webhook had it, if any.
	Heard *Heard    `json:"heard,omitempty"`
	At    time.Time `json:"at"`
}

// Heard stands for the text of a comment, as forge.Heard does.
type Heard struct {
	ID     int64  `json:"id"`
	Sum    string `json:"sum"`
	Edited bool   `json:"edited,omitempty"`
}

// askFor is the time that the engine keeps an ask: each member has read it by then.
const askFor = time.Minute

// Ask sends a request to all members, this one included.
func (c *Member) Ask(ctx context.Context, a Ask) error {
	s := c.keeper.Session()
	if s == nil {
		return fmt.Errorf("tell the other members: %w", coord.ErrLost)
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	a.At = time.Now().UTC()
	value, err := json.Marshal(a)
	if err != nil {
		return err
	}
	ops := []coord.Op{{Key: fmt.Sprintf("%s%015d-%s", askPrefix, a.At.UnixMilli(), hex.EncodeToString(random[:])), Value: value, If: 0}}
	for _, old := range c.mirror.Snapshot().List(askPrefix) {
		var was Ask
		if err := json.Unmarshal(old.Value, &was); (err != nil || a.At.Sub(was.At) > askFor) && len(ops) < coord.MaxOps/2 {
			ops = append(ops, coord.Op{Key: old.Key, Delete: true, If: coord.Any})
		}
	}
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	if _, err := s.Write(ctx, coord.Write{Ops: ops}); err != nil {
		return fmt.Errorf("tell the other members: %w", err)
	}
	_ = c.mirror.Sync(ctx) // else the next second's sync does
	return nil
}

// AskSoon is Ask without waiting.
func (c *Member) AskSoon(a Ask) {
	c.out.mu.Lock()
	c.out.asks = append(c.out.asks, a)
	c.out.mu.Unlock()
	c.wake()
}

// Asks calls handle with each request since its last call.
func (c *Member) Asks(handle func(Ask)) {
	list := c.mirror.Snapshot().List(askPrefix)
	now := make(map[string]bool, len(list))
	for _, r := range list {
		now[r.Key] = true
		c.mu.Lock()
		old := c.asks[r.Key]
		c.mu.Unlock()
		var a Ask
		if !old && json.Unmarshal(r.Value, &a) == nil {
			handle(a)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks = now
}
