package report_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/status/report"
)

func TestRolloutBatches(t *testing.T) {
	at := func(n int32) *int32 { return &n }
	for _, tt := range []struct {
		desired       int32
		low, high     *int32
		size, batches int
	}{
		{10, nil, nil, 1, 10},
		{100, nil, nil, 10, 10},
		{6, nil, nil, 1, 6},
		{6, at(67), nil, 1, 6}, // 4.02 is rounded up
		{6, at(50), nil, 3, 2},
		{10, at(100), nil, 1, 10},
		{10, at(0), nil, 10, 1},
		{7, at(50), at(100), 3, 3},
		{10, at(100), at(120), 2, 5},
		{10, at(100), at(125), 0, 0}, // 2.5 instances
		{10, at(90), at(110), 0, 0},
		{0, nil, nil, 0, 0},
		{10, at(-1), nil, 0, 0},
		{10, at(90), at(300), 0, 0},
	} {
		if size, batches := report.RolloutBatches(tt.desired, tt.low, tt.high); size != tt.size || batches != tt.batches {
			t.Errorf("%+v: %d, %d", tt, size, batches)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n, low := rapid.Int32Range(1, 10_000).Draw(t, "desired"), rapid.Int32Range(0, 100).Draw(t, "low")
		size, batches := report.RolloutBatches(n, &low, nil)
		if size < 1 || size > int(n) || size*batches < int(n) || size*(batches-1) >= int(n) {
			t.Fatalf("%d at once, %d batches", size, batches)
		}
		if left := int(n) - size; size > 1 && left*100 < int(n)*int(low) {
			t.Fatalf("%d of %d stay", left, n)
		}
	})
}
