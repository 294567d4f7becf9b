package plan

import "testing"

// Each case is what is known of a pool with three machines, and how it stands. What comes
// earlier in the table counts for more.
func TestReadinessOfAPool(t *testing.T) {
	fine := readinessFacts{exists: true, desired: 3, ready: 3, available: 3}
	with := func(change func(*readinessFacts)) readinessFacts {
		f := fine
		change(&f)
		return f
	}
	for _, tc := range []struct {
		name string
		is   readinessFacts
		want readiness
	}{
		{"all as Git asks", fine, converged},
		{"a fault in its manifest", with(func(f *readinessFacts) { f.failed, f.pending = true, true }), withError},
		{"its control plane is older", with(func(f *readinessFacts) { f.waits, f.pending = true, true }), awaitsControlPlane},
		{"a step is planned", with(func(f *readinessFacts) { f.pending, f.unlaunched = true, true }), changesPlanned},
		{"a node is not Ready", with(func(f *readinessFacts) { f.unready, f.ready = true, 2 }), nodesNotReady},
		{"a node is not Ready, which a rollout explains", with(func(f *readinessFacts) { f.unready, f.ready, f.rolls, f.moving = true, 2, true, true }), inProgress},
		{"a node is not Ready, and enough others are", with(func(f *readinessFacts) { f.unready = true }), converged},
		{"AWS has no capacity", with(func(f *readinessFacts) { f.unlaunched, f.moving, f.ready = true, true, 2 }), launchFailed},
		{"held to an earlier revision, with work left", with(func(f *readinessFacts) { f.open, f.held, f.exists = true, true, false }), heldBack},
		{"the same while machines move", with(func(f *readinessFacts) { f.open, f.held, f.moving = true, true, true }), inProgress},
		{"the group is not there yet", with(func(f *readinessFacts) { f.exists = false }), inProgress},
		{"machines are on their way", with(func(f *readinessFacts) { f.moving, f.open = true, true }), inProgress},
		{"a rollout left machines alone", with(func(f *readinessFacts) { f.open, f.ready = true, 2 }), outstanding},
		{"two of three machines are ready", with(func(f *readinessFacts) { f.ready, f.available = 2, 2 }), machinesMissing},
		{"three are ready, one only since a moment ago", with(func(f *readinessFacts) { f.available = 2 }), settling},
		{"held to an earlier revision, and as that says", with(func(f *readinessFacts) { f.earlier = true }), heldToEarlier},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.is.readiness(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
