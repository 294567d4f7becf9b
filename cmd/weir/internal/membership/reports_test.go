package membership

import (
	"bytes"
	"slices"
	"testing"
)

func numbers(list []numbered) (out []int64) {
	for _, r := range list {
		out = append(out, r.n)
	}
	return out
}

// Reports of passes that changed something stay in the record for a while, because no later report shows the change. Of the other reports only the newest
// stays.
func TestReportsThatDidSomethingStay(t *testing.T) {
	var list []numbered
	for n := range int64(30) {
		list = trim(append(list, numbered{n: n, did: n%3 == 0, data: []byte{byte(n)}}))
	}
	if got, want := numbers(list), []int64{9, 12, 15, 18, 21, 24, 27, 29}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	big := bytes.Repeat([]byte("x"), keptBytes/2)
	list = []numbered{{n: 1, did: true, data: big}, {n: 2, did: true, data: big}, {n: 3, data: big}}
	if got := numbers(trim(list)); !slices.Equal(got, []int64{2, 3}) {
		t.Errorf("of too much %v is kept", got)
	}
	if got := numbers(trim([]numbered{{n: 1, did: true, data: big}, {n: 2, data: append(big, big...)}})); !slices.Equal(got, []int64{2}) {
		t.Errorf("the newest does not stay: %v", got)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(pack([]numbered{{n: 1, did: true, data: []byte("one")}, {n: 2, data: nil}}))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x01\x01\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list := unpack(data)
		again := unpack(pack(list))
		if len(again) != len(list) {
			t.Errorf("%d reports are read as %d", len(list), len(again))
		}
	})
}
