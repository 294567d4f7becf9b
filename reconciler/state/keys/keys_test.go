package keys

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/state/statetest"
)

// TestAllHaveOneKey: daemons that need a key at once agree on it, and the engine does not
// hold it in any plain form.
func TestAllHaveOneKey(t *testing.T) {
	memory := coordtest.NewMemory()
	file := File("0123456789abcdef0123456789abcdef")
	got := make([][]byte, 4)
	var wg sync.WaitGroup
	for i := range got {
		m := statetest.Join(t, memory, string(rune('a'+i)))
		wg.Go(func() {
			var err error
			if got[i], err = (Ring{m, []Cipher{file}, "fleet"}).Key(t.Context(), Digest, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, key := range got {
		if len(key) != Bytes || !bytes.Equal(key, got[0]) {
			t.Fatalf("keys %x", got)
		}
	}
	m := statetest.Join(t, memory, "later")
	session, err := (Ring{m, []Cipher{file}, "fleet"}).Key(t.Context(), Session, nil)
	if err != nil || bytes.Equal(session, got[0]) {
		t.Errorf("another use: %v", err)
	}
	for after, more := "", true; more; more = after != "" {
		var page []coord.Record
		if page, after, err = m.List(t.Context(), "", after); err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			for _, key := range [][]byte{got[0], session, file} {
				if bytes.Contains(r.Value, key) || bytes.Contains(r.Value, []byte(base64.StdEncoding.EncodeToString(key))) {
					t.Errorf("%s holds a key", r.Key)
				}
			}
		}
	}
	for name, r := range map[string]Ring{"another file": {m, []Cipher{File("another one, of which nobody knows")}, "fleet"}, "another instance": {m, []Cipher{file}, "other"}} {
		if key, err := r.Key(t.Context(), Digest, nil); !errors.Is(err, ErrOther) {
			t.Errorf("%s: %x, %v", name, key, err)
		}
	}
}

// kms is a cipher far away.
type kms struct{ fails bool }

var errDenied = errors.New("AccessDeniedException: kms:Encrypt")

func (k kms) Encrypt(_ context.Context, plain []byte, about map[string]string) ([]byte, error) {
	if k.fails {
		return nil, errDenied
	}
	return append([]byte(about["weir.dev/instance"]+about["weir.dev/key"]), plain...), nil
}

func (k kms) Decrypt(_ context.Context, sealed []byte, about map[string]string) ([]byte, error) {
	plain, bound := bytes.CutPrefix(sealed, []byte(about["weir.dev/instance"]+about["weir.dev/key"]))
	if !bound {
		return nil, ErrOther
	}
	return plain, nil
}

// TestAKeyThatWasThereBefore stays the key, so that what was approved by it still holds; and
// without a cipher that works there is none.
func TestAKeyThatWasThereBefore(t *testing.T) {
	m := statetest.Join(t, coordtest.NewMemory(), "a")
	before := bytes.Repeat([]byte("k"), Bytes)
	if _, err := (Ring{m, []Cipher{kms{fails: true}}, "fleet"}).Key(t.Context(), Digest, before); !errors.Is(err, errDenied) {
		t.Errorf("without a cipher: %v", err)
	}
	ring := Ring{m, []Cipher{kms{}}, "fleet"}
	for _, first := range [][]byte{before, bytes.Repeat([]byte("x"), Bytes), nil} {
		if key, err := ring.Key(t.Context(), Digest, first); err != nil || !bytes.Equal(key, before) {
			t.Errorf("%x, %v", key, err)
		}
	}
}

// TestACipherIsReplaced by one that is put before it: the key stays, all who have both read
// it, and from then on nobody needs the old one.
func TestACipherIsReplaced(t *testing.T) {
	memory := coordtest.NewMemory()
	old, other := File("0123456789abcdef0123456789abcdef"), File("another one, of which nobody knows")
	joined := 0
	keyOf := func(ciphers ...Cipher) ([]byte, error) {
		joined++
		return Ring{statetest.Join(t, memory, string(rune('a'+joined))), ciphers, "fleet"}.Key(t.Context(), Digest, nil)
	}
	first, err := keyOf(old)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keyOf(kms{fails: true}, old); !errors.Is(err, errDenied) {
		t.Errorf("the new one cannot encrypt: %v", err)
	}
	for name, ciphers := range map[string][]Cipher{"the old one is left": {old}, "the new one comes last": {old, other}} {
		if key, err := keyOf(ciphers...); err != nil || !bytes.Equal(key, first) {
			t.Errorf("%s: %x, %v", name, key, err)
		}
	}
	if _, err := keyOf(other); !errors.Is(err, ErrOther) {
		t.Errorf("nothing was to be encrypted anew yet: %v", err)
	}
	if key, err := keyOf(other, old); err != nil || !bytes.Equal(key, first) {
		t.Errorf("both: %x, %v", key, err)
	}
	if key, err := keyOf(other); err != nil || !bytes.Equal(key, first) {
		t.Errorf("the new one alone: %x, %v", key, err)
	}
	if _, err := keyOf(old); !errors.Is(err, ErrOther) {
		t.Errorf("the old one alone: %v", err)
	}
	// The error is the cipher's failure, not that the key is another's.
	if _, err := keyOf(File("yet another, of which nobody knows"), broken{}); !errors.Is(err, errDenied) {
		t.Errorf("a cipher that fails: %v", err)
	}
}

// broken is a cipher that cannot be asked.
type broken struct{ kms }

func (broken) Decrypt(context.Context, []byte, map[string]string) ([]byte, error) {
	return nil, errDenied
}
