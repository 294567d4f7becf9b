package simulate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// member is one weir of the world: what it is told to follow, and the process that runs it,
// which is another one after each start.
type member struct {
	w *World
	// name is its instance, target its one target and that one's overlay, prefix how the
	// names of the target's pools begin.
	name, target, prefix string
	// reviewed says that it applies what people have approved and nothing else.
	reviewed bool
	process  *daemon // nil while none runs
	told     []told
	// allowed are the pools as people have approved them, where that is needed.
	allowed map[string][]pool
	// suspended are its pools that are suspended, by name, and "" for all of them.
	suspended map[string]suspension
}

// suspension begins by the world's clock, and ends by AWS's.
type suspension struct{ since, until time.Time }

// told is what Git said the branch was, at a moment.
type told struct {
	at       time.Time
	revision string
}

// join adds a member, before the world begins.
func (w *World) join(i int) {
	m := &member{w: w, name: "fleet", target: "prod", prefix: "pool-", reviewed: w.o.Reviewed, allowed: map[string][]pool{}, suspended: map[string]suspension{}}
	if i > 0 {
		m.name, m.target, m.prefix, m.reviewed = fmt.Sprintf("fleet-%d", i), fmt.Sprintf("prod-%d", i), fmt.Sprintf("m%d-pool-", i), false
	}
	w.members = append(w.members, m)
	w.repo.targets = append(w.repo.targets, m.target)
}

// configuration is what its process is started with.
func (m *member) configuration() string {
	apply := "always"
	if m.reviewed {
		apply = "as-reviewed"
	}
	return fmt.Sprintf(`apiVersion: weir.dev/v1alpha1
kind: Config
instance: %[1]s
stateDir: state
listen: 127.0.0.1:0
interval: %[3]v
keepVersions: 1
sources:
- {name: pools, url: http://git.example.com/fleet.git, ref: {branch: main}, interval: %[4]v}
forges:
- {type: gitea, url: http://forge.example.com/platform/fleet, tokenFile: token, webhookSecretFile: hook}
targets:
- name: %[2]s
  path: overlays/%[2]s
  region: eu-west-1
  prune: {enabled: true, limit: 50%%}
  apply: %[5]s
`, m.name, m.target, m.w.o.Interval, m.w.o.Interval/2, apply)
}

// files writes those that the configuration names; they hold secrets.
func (m *member) files(dir string) {
	for _, name := range []string{"token", "hook"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(canary+"-"+name+"\n"), 0o600); err != nil {
			m.w.t.Fatal(err)
		}
	}
}

// mine reports whether a pool of a tree is the member's, and gives the name of its group.
func (m *member) mine(key string) (group string, ok bool) {
	return strings.CutPrefix(key, m.target+"/")
}

// wants are the pools of a tree that are the member's, by the names of their groups.
func (m *member) wants(t tree) map[string]pool {
	out := map[string]pool{}
	for key, p := range t.pools {
		if name, ok := m.mine(key); ok {
			out[name] = p
		}
	}
	return out
}

// knows are the commits that the member may act on: those that Git told it of lately, and
// the last one before, for a pass may have been planned some time ago.
func (m *member) knows() (out []head) {
	const lately = 12 * time.Minute
	for i := len(m.told) - 1; i >= 0; i-- {
		for j := len(m.w.repo.heads) - 1; j >= 0; j-- {
			if h := m.w.repo.heads[j]; h.revision == m.told[i].revision {
				out = append(out, h)
				break
			}
		}
		if time.Since(m.told[i].at) > lately {
			break
		}
	}
	slices.Reverse(out)
	return out
}

// hear notes what Git said.
func (m *member) hear(revision string) {
	if n := len(m.told); n > 1 && m.told[n-1].revision == revision && m.told[n-2].revision == revision {
		m.told[n-1].at = time.Now()
		return
	}
	m.told = append(m.told, told{time.Now(), revision})
	const most = 100
	if len(m.told) > 2*most {
		m.told = slices.Clone(m.told[most:])
	}
}

// allow notes that somebody has approved pools as they are in a tree.
func (m *member) allow(t tree, keys ...string) {
	for key, p := range t.pools {
		if name, ok := m.mine(key); ok && (len(keys) == 0 || slices.Contains(keys, key)) && !slices.Contains(m.allowed[name], p) {
			m.allowed[name] = append(m.allowed[name], p)
		}
	}
}

type callerKey struct{}

// caller is the process that makes a call; nil if none does.
func caller(ctx context.Context) *daemon {
	d, _ := ctx.Value(callerKey{}).(*daemon)
	return d
}

// running are the members whose process runs.
func (w *World) running() (out []*member) {
	for _, m := range w.members {
		if m.process != nil {
			out = append(out, m)
		}
	}
	return out
}

// memberOfGroup is the member whose pools have such names.
func (w *World) memberOfGroup(name string) *member {
	for _, m := range w.members {
		if strings.HasPrefix(name, m.prefix) {
			return m
		}
	}
	return nil
}

// memberOf is the member of a target.
func (w *World) memberOf(key string) *member {
	for _, m := range w.members {
		if _, ok := m.mine(key); ok {
			return m
		}
	}
	return nil
}
