package pack_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/pack"
)

type severity int

type inner struct {
	Text  string
	Bools [2]bool `json:"-"`
}

type outer struct {
	Text, Same string
	Yes, No    bool
	Number     int32
	Severity   severity
	Float      float64
	Zero, Nil  *int64
	False      *bool
	List       []string
	Empty      []string
	None       []string
	Maps       map[severityName][]*leaf
	EmptyMap   map[string]leaf
	NoMap      map[string]leaf
}

type (
	severityName string
	leaf         struct{ Name string }
)

func full() outer {
	return outer{
		Text: "same", Same: "same", Yes: true, Number: math.MinInt32, Severity: 2, Float: -0.5, Zero: new(int64), False: new(bool),
		List: []string{"", "a", "same"}, Empty: []string{}, Maps: map[severityName][]*leaf{"b": {nil, {"x"}}, "a": {}, "": nil}, EmptyMap: map[string]leaf{},
	}
}

func TestExact(t *testing.T) {
	for _, want := range []outer{{}, full()} {
		b := pack.Pack([]byte("head"), &want)
		var got outer
		if err := pack.Unpack(b[4:], &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestBroken(t *testing.T) {
	v := full()
	b := pack.Pack(nil, &v)
	var got outer
	for n := range len(b) {
		if err := pack.Unpack(b[:n], &got); !errors.Is(err, pack.ErrBroken) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
	if err := pack.Unpack(append(b, 0), &got); !errors.Is(err, pack.ErrBroken) {
		t.Errorf("a byte more: %v", err)
	}
}

func TestWhatCannotBePacked(t *testing.T) {
	for name, do := range map[string]func(){
		"a hidden field": func() { pack.Pack(nil, &struct{ a int }{1}) },
		"an array":       func() { pack.Pack(nil, &inner{}) },
		"an interface":   func() { pack.Pack(nil, new(any)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is packed", name)
				}
			}()
			do()
		}()
	}
}

func FuzzUnpack(f *testing.F) {
	v := full()
	f.Add(pack.Pack(nil, &v))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var got, again outer
		if pack.Unpack(b, &got) != nil || math.IsNaN(got.Float) {
			return
		}
		if err := pack.Unpack(pack.Pack(nil, &got), &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
