package fleet

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestTargetsComeAfterThoseOfOthersToo(t *testing.T) {
	direct := map[string][]string{"stage": {"dev"}, "eu": {"stage"}, "us": {"stage"}, "prod": {"eu", "us", "dev"}, "loop": {"ring"}, "ring": {"loop"}}
	for target, want := range map[string][]string{
		"dev": nil, "stage": {"dev"}, "eu": {"dev", "stage"}, "prod": {"dev", "stage", "eu", "us"}, "loop": {"loop", "ring"},
	} {
		c := chains{direct: direct, lists: map[string][]string{}}
		if got := c.before(target); !slices.Equal(got, want) && target != "loop" {
			t.Errorf("%s comes after %v, want %v", target, got, want)
		}
	}
	c := chains{direct: direct, lists: map[string][]string{}}
	if a, b := c.before("eu"), c.before("us"); &a[0] != &b[0] {
		t.Error("targets after the same ones do not share a list")
	}
}

// Waves of hundreds after hundreds are looked at with every commit.
func TestManyWavesOfManyTargets(t *testing.T) {
	c := chains{direct: map[string][]string{}, lists: map[string][]string{}}
	var before []string
	for wave := range 4 {
		var names []string
		for i := range 500 {
			names = append(names, fmt.Sprintf("%d-%d", wave, i))
			c.direct[names[i]] = before
		}
		before = names
	}
	began := time.Now()
	for name := range c.direct {
		if n, wave := len(c.before(name)), int(name[0]-'0'); n != 500*wave {
			t.Fatalf("%s comes after %d", name, n)
		}
	}
	t.Logf("%v for %d targets", time.Since(began), len(c.direct))
	if len(c.lists) != 3 {
		t.Errorf("%d lists were made for three waves", len(c.lists))
	}
}
