package reconciler_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// withZero puts 0 or false, as Git may write it, into a row's member of
// settings; ok is false where a row takes none.
func withZero(settings any, r *field.Row, path string) (ok bool) {
	if r.Min != nil && *r.Min > 0 || r.Values != "" || strings.Contains(r.AWS, "[]") {
		return false
	}
	v := reflect.ValueOf(settings).Elem()
	for _, name := range strings.Split(path, ".") {
		v = made(v).FieldByName(name)
	}
	if v.Kind() != reflect.Pointer || v.Type().Elem().Kind() != reflect.Int32 && v.Type().Elem().Kind() != reflect.Bool {
		return false // an empty list is refused in Git
	}
	v.Set(reflect.New(v.Type().Elem()))
	return true
}

// A 0 or false in Git is no absent member. It wins over AWS's default when the group is
// made, and over another value in AWS, and then nothing is left to do.
func TestAWrittenZeroOfAGroupIsHeld(t *testing.T) {
	rows := 0
	for _, r := range field.Rows(field.Group) {
		name, _, deeper := strings.Cut(r.AWS, ".")
		m, found := field.GroupMember()[name]
		var zero intent.GroupSettings
		if !found || deeper || m.Special || m.Call != field.UpdateGroup {
			continue
		}
		at := &zero
		if _, direct := reflect.TypeFor[intent.GroupSettings]().FieldByName(r.AWS); direct {
			if !withZero(at, r, r.AWS) {
				continue
			}
		} else if !withZero(&at.Options, r, r.AWS) {
			continue
		}
		rows++
		t.Run(r.AWS, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			wish := func(change bool) reconciler.Desired {
				p := groupPool("web", "m5.large", 1)
				p.Options = object("PoolOptions", "web")
				if change {
					m.Of(&p.Group.GroupSettings).Set(m.Of(at))
				} else {
					p.Group.GroupSettings = withMember(p.Group.GroupSettings, m, 0)
				}
				return target("blue", p)
			}
			has := func(when string) {
				t.Helper()
				w.restart()
				w.stillAndSilent(wish(true))
				state, err := newScope(w).Cloud.Observe(t.Context(), observed.Query{Owner: testInstance, Groups: true})
				g, ok := state.Groups["web"]
				if err != nil || !ok {
					t.Fatal(state, err)
				}
				if got := m.Of(&g.GroupSettings); !m.Holds(m.Of(at), got) {
					t.Errorf("%s: AWS has %v", when, got)
				}
			}
			w.settle(wish(true))
			has("made")
			byHand := step.UpdateGroup{Name: "web", GroupSettings: withMember(intent.GroupSettings{}, m, 0)}
			w.check(newScope(w).Cloud.Execute(t.Context(), byHand))
			w.settle(wish(true))
			has("changed by hand")
			w.settle(wish(false))
			w.settle(wish(true))
			has("changed in Git")
		})
	}
	if rows < 4 {
		t.Errorf("only %d rows", rows)
	}
}
