package attr

import (
	"cmp"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"
)

// TestNumbers are written as DynamoDB writes them.
func TestNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0.0": "0", "0e999": "0", "007": "7", "+1.50": "1.5", "1.": "1", ".5": "0.5", "1e2": "100", "12E-1": "1.2", "-0.00120": "-0.0012",
		strings.Repeat("9", 38): strings.Repeat("9", 38), "1" + strings.Repeat("0", 125): "1" + strings.Repeat("0", 125), "1e-130": "0." + strings.Repeat("0", 129) + "1",
		"": "", "e5": "", "1e": "", "0x10": "", "1_000": "", " 1": "", "NaN": "", strings.Repeat("9", 39): "", "1e126": "", "1e-131": "", "1e99999999999999999999": "", "1e-99999999999999999999": "",
	} {
		n, err := ParseNumber(text)
		if got := n.String(); err == nil && got != want || (err != nil) != (want == "") {
			t.Errorf("%q = %s, %v, want %s", text, got, err, want)
		}
	}
}

// FuzzNumbers: order, sum and text are those of the numbers, and keys sort like them.
func FuzzNumbers(f *testing.F) {
	for _, text := range []string{"0", "1", "-1", "1.5", "-1.5", "15", "1e-130", "9.9e125", "-9.9e125", "0.30000000000000004", "12345678901234567890123456789012345678"} {
		f.Add(text, "1.5")
		f.Add("-15e-1", text)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		a, errA := ParseNumber(first)
		b, errB := ParseNumber(second)
		if errA != nil || errB != nil {
			return
		}
		exact := func(text string) *big.Rat {
			r, ok := new(big.Rat).SetString(text)
			if !ok {
				t.Fatalf("%q is no number", text)
			}
			return r
		}
		x, y := exact(a.String()), exact(b.String())
		if want := x.Cmp(y); a.Compare(b) != want || cmp.Compare(a.sortable(), b.sortable()) != want {
			t.Errorf("%s and %s: order %d, sorted %d, want %d", a, b, a.Compare(b), cmp.Compare(a.sortable(), b.sortable()), want)
		}
		if again, err := ParseNumber(a.String()); err != nil || again.Compare(a) != 0 {
			t.Errorf("%s is read again as %s, %v", a, again, err)
		}
		sum, err := a.Plus(b.Negated())
		if err == nil && exact(sum.String()).Cmp(x.Sub(x, y)) != 0 {
			t.Errorf("%s - %s = %s", a, b, sum)
		}
	})
}

// FuzzValues: what was read is written so that it is read as the same; else the error is
// AWS's.
func FuzzValues(f *testing.F) {
	for _, text := range []string{
		`{"S": "a"}`, `{"N": "1e5"}`, `{"B": "AAE="}`, `{"BOOL": false}`, `{"NULL": true}`, `{"L": [{"S": ""}, {"M": {}}]}`, `{"M": {"a": {"L": []}}}`,
		`{"SS": ["a", "b"]}`, `{"NS": ["1", "2.0"]}`, `{"BS": ["", "AA=="]}`, `{}`, `{"S": "a", "N": "1"}`, `{"NS": ["1", "1.0"]}`, `{"NULL": false}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v, again Value
		if err := json.Unmarshal(data, &v); err != nil || v.Type == "" { // null is no value
			return
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &again); err != nil || !v.Equal(again) || !again.Equal(v) || v.Size() != again.Size() {
			t.Errorf("%s is written as %s, %v", data, text, err)
		}
	})
}

// TestDeepValuesAreRefusedAtOnce, not after each level read all that is below it: what
// is wrong at the bottom is not seen.
func TestDeepValuesAreRefusedAtOnce(t *testing.T) {
	const levels = 4000
	text := strings.Repeat(`{"L": [`, levels) + `{"N": "none"}` + strings.Repeat(`]}`, levels)
	var v Value
	if err := json.Unmarshal([]byte(text), &v); !errors.Is(err, errDepth) {
		t.Errorf("error = %v", err)
	}
	brackets := `{"S": "` + strings.Repeat(`[{\\\"`, 1000) + `"}`
	if err := json.Unmarshal([]byte(brackets), &v); err != nil || len(v.Text) != 4000 {
		t.Errorf("a text of brackets: %v, %d", err, len(v.Text))
	}
}
