package coordtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Load lets two members work on some scopes for the time d. Each scope writes a result of size bytes after
// every; a size of 0 means none. Load calls during at the start and the end.
func Load(b *testing.B, open func(member int) coord.Store, scopes int, every time.Duration, size int, d time.Duration, during func()) {
	var all []coord.Scope
	for i := range scopes {
		all = append(all, coord.Scope{Key: fmt.Sprintf("aws/%012d/eu-central-1", i), Weight: 5})
	}
	ctx, stop := context.WithCancel(b.Context())
	var members sync.WaitGroup
	var working sync.WaitGroup
	working.Add(scopes)
	var worked sync.Map
	for i := range 2 {
		engine := coord.New(open(i), coord.Options{})
		k := coord.NewKeeper(coord.KeeperOptions{
			Engine: engine, Mirror: coord.NewMirror(engine), Member: coord.Member{Name: fmt.Sprint("weir-", i)},
			Scopes: func() []coord.Scope { return all },
			Run: func(l *coord.Lease) {
				if _, again := worked.LoadOrStore(l.Owner.Key, true); !again {
					working.Done()
				}
				for wait := rand.N(every); ; wait = every {
					l.Progress()
					select {
					case <-l.Context().Done():
						return
					case <-time.After(wait):
					}
					if size == 0 {
						continue
					}
					if _, err := l.Write(l.Context(), coord.Op{Key: "result/" + l.Owner.Key, Value: make([]byte, size), If: coord.Any}); err != nil && l.Context().Err() == nil {
						b.Error(err)
					}
				}
			},
		})
		members.Go(func() { k.Run(ctx) })
		time.Sleep(100 * time.Millisecond)
	}
	working.Wait()
	time.Sleep(coord.Settle + coord.Steady + 10*time.Second) // until each member has its fraction
	during()
	time.Sleep(d)
	during()
	stop()
	members.Wait()
}
