package doctor_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud/doctor"
)

var writes = regexp.MustCompile(`^(Create|Delete|Update|Put|Enable|Start|Cancel|Rollback|POST|DELETE|PUT)`)

// called lists the operations that a visit calls, in order.
func called(r *doctor.Report) (names []string) {
	for name := range r.Calls {
		names = append(names, name)
	}
	return names
}

func TestAVisitReadsUnlessItMayApply(t *testing.T) {
	p := newPatient(t, nil)
	r := p.visit(t.Context(), func(o *doctor.Options) { o.Apply = false })
	for _, name := range called(r) {
		if _, operation, _ := strings.Cut(name, ":"); writes.MatchString(operation) {
			t.Errorf("%s was called", name)
		}
	}
	for _, f := range r.Findings {
		if f.Verdict == doctor.Differs {
			t.Errorf("%s differs: %v", f.Name, f.Evidence)
		}
	}
	if n := r.Count(doctor.AsAssumed); n < 4 {
		t.Errorf("%d assumptions were seen", n)
	}
}

// TestAVisitCleansUpWhateverHappens denies each kind of call, loses each answer and
// interrupts the visit at each call: what it made is gone, or stands in the report.
func TestAVisitCleansUpWhateverHappens(t *testing.T) {
	var kinds []string
	counting := broken{operation: regexp.MustCompile(`.`)}
	total := 0
	newKind := map[string]bool{}
	p := newPatient(t, func(next http.Handler) http.Handler {
		inner := counting.front(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { total++; inner.ServeHTTP(w, r) })
	})
	for _, name := range called(p.visit(t.Context(), nil)) {
		_, operation, _ := strings.Cut(name, ":")
		if !newKind[operation] && operation != "GetCallerIdentity" {
			newKind[operation] = true
			kinds = append(kinds, operation)
		}
	}
	rest := map[string]string{ // of EKS's REST paths
		"CreateNodegroup": `^POST .*/node-groups$`, "DeleteNodegroup": `^DELETE .*/node-groups/`, "DescribeNodegroup": `^GET .*/node-groups/.`, "ListNodegroups": `^GET .*/node-groups$`,
		"ListClusters": `^GET /clusters$`, "DescribeCluster": `^GET /clusters/[^/]*$`, "UpdateNodegroupConfig": `/update-config$`, "UpdateNodegroupVersion": `/update-version$`,
	}
	for _, kind := range kinds {
		pattern := "^" + kind + "$"
		if path, ok := rest[kind]; ok {
			pattern = path
		}
		t.Run("denied/"+kind, func(t *testing.T) {
			p := newPatient(t, broken{operation: regexp.MustCompile(pattern), refuse: always(403, "AccessDenied")}.front)
			accounted(p, p.visit(t.Context(), nil))
		})
		t.Run("lost/"+kind, func(t *testing.T) {
			p := newPatient(t, func(next http.Handler) http.Handler {
				lost := false
				operation := regexp.MustCompile(pattern)
				return broken{operation: operation, answer: func(text string) string {
					if lost {
						return text
					}
					lost = true
					panic(http.ErrAbortHandler)
				}}.front(next)
			})
			accounted(p, p.visit(t.Context(), nil))
		})
	}
	for at := 2; at < total; at += 7 {
		t.Run(fmt.Sprintf("interrupted/%d", at), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n := 0
			p := newPatient(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if n++; n == at {
						cancel()
					}
					next.ServeHTTP(w, r)
				})
			})
			// The clock goes on while what was made is deleted.
			r := p.visit(ctx, func(o *doctor.Options) {
				o.Wait = func(ctx context.Context, d time.Duration) error { p.clock.Advance(d); return ctx.Err() }
			})
			accounted(p, r)
			p.empty()
		})
	}
}

// accounted wants everything that a visit made gone, or named in its report.
func accounted(p *patient, r *doctor.Report) {
	p.t.Helper()
	for _, name := range p.bare().made() {
		said := strings.Join(r.Left, "\n")
		if !strings.Contains(said, name) && !strings.Contains(said, "could not be looked for") && !strings.Contains(said, "lt-") {
			p.t.Errorf("%s is left, and the report says %q", name, said)
		}
	}
}

func TestNumbersOfVisits(t *testing.T) {
	p := newPatient(t, nil)
	for _, number := range []string{"", "a-b", "a*", "ä"} {
		if _, err := doctor.Visit(t.Context(), p.open(&doctor.Clock{}), nil, doctor.Options{Number: number}); err == nil {
			t.Errorf("the number %q is taken", number)
		}
	}
}
