package simulate

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"weak"

	"github.com/weir-gitops/weir/cmd/weir/internal/app"
)

// instance is one weir of the world: what it is told to follow, and the members that do it,
// one where it is alone.
type instance struct {
	w    *World
	name string
	// reviewed says that it applies what people have approved and nothing else.
	reviewed bool
	targets  []*target
	members  []*member
	told     []told
	asked    int // how often one of its members was
	// allowed are the pools as people have approved them, where that is needed.
	allowed map[string][]pool
	// released are groups that a plan deletes which somebody has approved, whatever the limit.
	released map[string]bool
}

// target is one of an instance's, and its overlay. Prefix is how the names of its pools
// begin, which no other target's do.
type target struct {
	of                   *instance
	name, prefix, region string
	// suspended are its pools that are suspended, by name, and "" for all of them.
	suspended map[string]suspension
}

// member is one daemon of an instance, and the process that runs it, which is another one
// after each start.
type member struct {
	*instance
	id      string        // among those of its instance
	wall    time.Duration // what its clock is set ahead by
	starts  int
	process *daemon                 // nil while none runs
	apps    []weak.Pointer[app.App] // of all its processes
}

// suspension begins by the world's clock, and ends by AWS's.
type suspension struct{ since, until time.Time }

// told is what Git said the branch was, at a moment.
type told struct {
	at       time.Time
	revision string
}

// join adds an instance of one member, before the world begins.
func (w *World) join(i int) {
	m := &instance{w: w, name: "fleet", reviewed: w.o.Reviewed && i == 0, allowed: map[string][]pool{}, released: map[string]bool{}}
	if i > 0 {
		m.name = fmt.Sprintf("fleet-%d", i)
	}
	w.instances = append(w.instances, m)
	w.follow(m)
	m.members = []*member{{instance: m, id: m.name}}
	w.members = append(w.members, m.members...)
}

// follow gives an instance one more target.
func (w *World) follow(m *instance) {
	t := &target{of: m, name: "prod", prefix: "pool-", region: "eu-west-1", suspended: map[string]suspension{}}
	if i := len(w.targets); i > 0 {
		t.name, t.prefix = fmt.Sprintf("prod-%d", i), fmt.Sprintf("m%d-pool-", i)
	}
	m.targets = append(m.targets, t)
	w.targets = append(w.targets, t)
	w.repo.targets = append(w.repo.targets, t.name)
}

// configuration is what its processes are started with.
func (m *instance) configuration() string {
	apply := "always"
	if m.reviewed {
		apply = "as-reviewed"
	}
	crew := ""
	if m.w.engine != nil {
		crew = "coordination: {keysFile: keys, etcd: {endpoints: [\"http://127.0.0.1:2379\"]}}\n"
	}
	var targets strings.Builder
	for _, t := range m.targets {
		fmt.Fprintf(&targets, "- {name: %[1]s, path: overlays/%[1]s, region: %[2]s, prune: {enabled: true, limit: 50%%}, apply: %[3]s}\n", t.name, t.region, apply)
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
%[2]s%[5]s`, m.name, targets.String(), m.w.o.Interval, m.w.o.Interval/2, crew)
}

// files writes those that the configuration names; they hold secrets.
func (m *instance) files(dir string) {
	keys := base64.StdEncoding.EncodeToString([]byte("k" + canary + canary)[:32])
	for name, text := range map[string]string{"token": canary + "-token", "hook": canary + "-hook", "keys": keys} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
			m.w.t.Fatal(err)
		}
	}
}

// mine reports whether a pool of a tree is the instance's, and gives the name of its group.
func (m *instance) mine(key string) (group string, ok bool) {
	name, group, _ := strings.Cut(key, "/")
	return group, slices.ContainsFunc(m.targets, func(t *target) bool { return t.name == name })
}

// wants are the pools of a tree that are the instance's, by the names of their groups.
func (m *instance) wants(t tree) map[string]pool {
	out := map[string]pool{}
	for key, p := range t.pools {
		if name, ok := m.mine(key); ok {
			out[name] = p
		}
	}
	return out
}

// knows are the commits that the instance may act on: those that Git told it of lately, and
// the last one before, for a pass may have been planned some time ago.
func (m *instance) knows() (out []head) {
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
func (m *instance) hear(revision string) {
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
func (m *instance) allow(t tree, keys ...string) {
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

// running are the members whose process runs, and does not stand still.
func (w *World) running() (out []*member) {
	for _, m := range w.members {
		if d := m.process; d != nil && d.app != nil && !d.stands() {
			out = append(out, m)
		}
	}
	return out
}

// targetOfGroup is the target whose pools have such names.
func (w *World) targetOfGroup(name string) *target {
	for _, t := range w.targets {
		if strings.HasPrefix(name, t.prefix) {
			return t
		}
	}
	return nil
}

// targetOf is the target of a pool of a tree.
func (w *World) targetOf(key string) *target {
	name, _, _ := strings.Cut(key, "/")
	for _, t := range w.targets {
		if t.name == name {
			return t
		}
	}
	return nil
}
