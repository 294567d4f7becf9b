package preflight

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// hostile are pools that each name things of their own of every kind.
func hostile(n int) (pools []intent.Pool) {
	for i := range n {
		p := full()
		own := fmt.Sprintf("%05d", i)
		p.Key.Name, p.MachinePool.Name, p.Infrastructure.Name, p.Options.Name = own, own, own, own
		t := *p.LaunchTemplate
		t.Name = own
		t.Data.KeyName, t.Data.IamInstanceProfile = "*"+own, &intent.InstanceProfile{Name: own}
		t.Data.SecurityGroupIDs = []string{"sg-" + own}
		t.Data.InstanceType = "m5." + own
		t.Data.Placement = &intent.Placement{GroupName: own}
		t.Data.BlockDeviceMappings = []intent.BlockDeviceMapping{{Ebs: intent.Ebs{KmsKeyID: own}}}
		p.LaunchTemplate = &t
		p.Group.Options.TargetGroupARNs = []string{tg(own)}
		pools = append(pools, p)
	}
	return pools
}

// TestWhatAStrangerNamesIsBounded: thousands of names cost few calls and little time, and
// nothing that another plan names is unknown for it.
func TestWhatAStrangerNamesIsBounded(t *testing.T) {
	f := newFake()
	f.most = map[string]int{}
	for range 20_000 {
		f.running = append(f.running, Instance{Type: "m5.large"}, Instance{Type: "c5.large", VCPUs: 2, Spot: true})
	}
	f.quotas["L-1216C47A"] = 1e6
	a := New(f, f, func() time.Time { return time.Unix(0, 0) })
	pools := hostile(4000)
	for i := range 2000 { // half of them are pools that quotas are counted for
		pools[i].LaunchTemplate.Data.InstanceType = "m5.large"
	}
	began := time.Now()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found := a.Findings(context.Background(), []Request{creation([]string{"subnet-a"}, pools...)})[0]
	runtime.ReadMemStats(&after)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("%d findings took %s", len(found), took)
	}
	for op, n := range f.counts() {
		if n > mostEach {
			t.Errorf("%d calls of %s", n, op)
		}
	}
	for op, n := range f.most {
		if n > mostBatch {
			t.Errorf("%d names for %s", n, op)
		}
	}
	if !has(found, codeUnasked, "iam:GetInstanceProfile ("+codeMany+")") || !has(found, codeUnasked, "ec2:DescribeKeyPairs ("+codeMany+")") {
		t.Error("what is not asked is not said")
	}
	if size := after.TotalAlloc - before.TotalAlloc; size > 512<<20 {
		t.Errorf("%d MiB were used", size>>20)
	}
	f.quotas["L-1216C47A"] = 1e9
	own := full()
	own.LaunchTemplate.Data.KeyName = pools[3999].LaunchTemplate.Data.KeyName
	f.keyPairs[own.LaunchTemplate.Data.KeyName] = true
	if found := a.Findings(context.Background(), []Request{creation([]string{"subnet-a"}, own)})[0]; has(found, codeUnasked, "") || has(found, codeUnknown, "") {
		t.Errorf("another plan is told: %v", found)
	}
}

// TestSizesDoNotOverflow: manifests may say any number.
func TestSizesDoNotOverflow(t *testing.T) {
	for _, n := range []int32{30_000_000, math.MaxInt32} {
		first, second := webPool(), webPool()
		second.Key.Name = "second"
		for _, p := range []*intent.Pool{&first, &second} {
			p.Replicas.Value = n
			p.Group.MixedInstancesPolicy = &intent.MixedInstances{OnDemandPercentageAboveBaseCapacity: 50, Overrides: []intent.Override{{InstanceType: "m5.large"}}}
		}
		got := strings.Join(ask(newFake(), creation([]string{"subnet-a"}, first, second)), "\n")
		for _, want := range []string{"have 100 free addresses", "On-Demand machines and runs 0, and the plan wants " + fmt.Sprint(int64(n)/2*2), "Spot machines"} {
			if !strings.Contains(got, want) {
				t.Errorf("%d machines: no %q in:\n%s", n, want, got)
			}
		}
	}
}

// TestPoolsThatShareSomeSubnets: a pool that may use two subnets does not take from one of
// them what another pool has in it alone, and both may not have more than there is.
func TestPoolsThatShareSomeSubnets(t *testing.T) {
	for name, tt := range map[string]struct {
		sizes [3]int32 // of pools in a, in b, and in both
		want  []string
	}{
		"room for all":    {[3]int32{5, 5, 10}, nil},
		"a is too small":  {[3]int32{11, 1, 1}, []string{"the pool's subnets have 10 free addresses, and the plan puts 11 more machines in them: AWS"}},
		"all are too big": {[3]int32{9, 9, 3}, []string{"the pool's subnets have 20 free addresses, and the plan puts 21 more machines in them, with the 18 of pools before it: AWS"}},
		"only together":   {[3]int32{10, 0, 11}, []string{"the pool's subnets have 20 free addresses, and the plan puts 21 more machines in them, with the 10 of pools before it: AWS"}},
	} {
		f := newFake()
		f.subnets["subnet-a"], f.subnets["subnet-b"] = Subnet{Zone: "eu-west-1a", Free: 10}, Subnet{Zone: "eu-west-1b", Free: 10}
		var pools []intent.Pool
		for i, n := range tt.sizes {
			p := webPool()
			p.Key.Name, p.Infrastructure.Name = fmt.Sprint("web", i), fmt.Sprint("web", i)
			p.Replicas.Value, p.Group.MinSize = n, 0
			p.Group.Subnets.Name = fmt.Sprint(i)
			pools = append(pools, p)
		}
		c := creation(nil, pools...)
		for i, subnets := range [][]string{{"subnet-a"}, {"subnet-b"}, {"subnet-b", "subnet-a"}} {
			c.Input.Answers[intent.Lookup{Kind: intent.Subnets, Name: fmt.Sprint(i)}] = observed.Answer{Subnets: subnets, VPCs: []string{"vpc-1"}}
		}
		var got []string
		for _, line := range ask(f, c) {
			if _, says, short := strings.Cut(line, "spec.subnets: "); short {
				got = append(got, says[:strings.Index(says, "AWS")+3])
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestWarmPoolsHaveTheirMachines: those that wait have their addresses already, and count
// against a quota where they wait running.
func TestWarmPoolsHaveTheirMachines(t *testing.T) {
	warm := func(prepared, least int32, state string) *intent.WarmPool {
		return &intent.WarmPool{MaxGroupPreparedCapacity: prepared, MinSize: least, PoolState: state}
	}
	for name, tt := range map[string]struct {
		have *intent.WarmPool // of a group of 2, with 10 at most
		step step.Action
		want [2]int64 // further machines that run, and that have addresses
	}{
		"no warm pool":                 {nil, step.UpdateGroup{Name: "web", DesiredCapacity: new(int32(6))}, [2]int64{4, 4}},
		"filled":                       {warm(-1, 0, "Stopped"), step.UpdateGroup{Name: "web", DesiredCapacity: new(int32(6))}, [2]int64{4, 0}},
		"filled and running":           {warm(-1, 0, "Running"), step.UpdateGroup{Name: "web", DesiredCapacity: new(int32(6))}, [2]int64{0, 0}},
		"prepared for some":            {warm(4, 0, "Stopped"), step.UpdateGroup{Name: "web", DesiredCapacity: new(int32(6))}, [2]int64{4, 2}},
		"as many wait as before":       {warm(0, 3, "Stopped"), step.UpdateGroup{Name: "web", DesiredCapacity: new(int32(6))}, [2]int64{4, 4}},
		"more wait as the most grows":  {warm(-1, 0, "Stopped"), step.UpdateGroup{Name: "web", MaxSize: new(int32(15))}, [2]int64{0, 5}},
		"a new one":                    {nil, step.PutWarmPool{Group: "web", WarmPool: *warm(-1, 0, "Stopped")}, [2]int64{0, 8}},
		"a new one that runs":          {nil, step.PutWarmPool{Group: "web", WarmPool: *warm(-1, 0, "Running")}, [2]int64{8, 8}},
		"a smaller one":                {warm(-1, 0, "Running"), step.PutWarmPool{Group: "web", WarmPool: *warm(5, 0, "Running")}, [2]int64{0, 0}},
		"rolled with twice the number": {warm(-1, 0, "Stopped"), step.StartRefresh{Group: "web", Preferences: intent.Refresh{MaxHealthyPercentage: new(int32(200))}}, [2]int64{2, 2}},
	} {
		c := creation([]string{"subnet-a"}, webPool())
		c.Input.State.Groups = map[string]observed.Group{"web": {Name: "web", DesiredCapacity: 2, MaxSize: 10, GroupSettings: intent.GroupSettings{Options: intent.GroupOptions{WarmPool: tt.have}}}}
		c.Steps = []step.Step{{Pool: c.Steps[0].Pool, Do: tt.step}}
		var got [2]int64
		for _, l := range launchesOf(c.Plan, c.Input) {
			got = [2]int64{l.more, l.addresses}
		}
		if got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}
