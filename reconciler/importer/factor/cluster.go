package factor

import (
	"cmp"
	"container/heap"
	"slices"
	"strconv"
	"strings"
)

// shape is a set of pools that share a base.
type shape struct {
	name string
	// called is the name of the base's objects.
	called string
	parts  []*part
	// base lists the leaves that most of the pools have.
	base []leaf
}

// most bounds the number of pools that are compared with each other. Further pools are compared only with
// the resulting shapes.
const most = 1000

// The number of lines that files need besides the values.
const (
	linesOfBase  = 16 // kustomization, and the heads of the objects
	linesOfPool  = 5
	linesOfPatch = 5
)

// shapes finds the pools that share a base. It starts with single pools, and always joins the two sets whose
// union saves most lines, as long as lines are saved and the common part is at least twice as large as the
// differences. most bounds its time.
func shapes(parts []*part) (out []*shape) {
	tellKinds(parts)
	bySignature := map[string][]*part{}
	var order []string
	for _, p := range parts {
		if len(p.objects) == 0 {
			continue
		}
		if bySignature[p.signature] == nil {
			order = append(order, p.signature)
		}
		bySignature[p.signature] = append(bySignature[p.signature], p)
	}
	slices.Sort(order)
	for _, signature := range order {
		all := bySignature[signature]
		for _, c := range clustered(all, ofClusters(all)) {
			s := &shape{}
			for _, i := range c.members {
				s.parts = append(s.parts, all[i])
			}
			if len(s.parts) < 2 {
				continue
			}
			s.base = majority(s.parts)
			for _, p := range s.parts {
				p.shape = s
			}
			out = append(out, s)
		}
	}
	return out
}

// ofClusters returns the paths whose values depend only on the cluster. They do not show which pools are
// similar.
func ofClusters(parts []*part) map[string]bool {
	type value struct {
		text    string
		n       int
		differs bool
	}
	values, pools := map[string]map[string]*value{}, map[string]int{} // by path and cluster
	for _, p := range parts {
		pools[p.pool.Cluster]++
		for _, l := range p.leaves {
			if values[l.path] == nil {
				values[l.path] = map[string]*value{}
			}
			v := values[l.path][p.pool.Cluster]
			if v == nil {
				v = &value{text: l.text}
				values[l.path][p.pool.Cluster] = v
			}
			v.n++
			v.differs = v.differs || v.text != l.text
		}
	}
	out := map[string]bool{}
	for path, in := range values {
		same := len(pools) > 1 && len(in) == len(pools)
		for cluster, v := range in {
			same = same && !v.differs && v.n == pools[cluster]
		}
		if same {
			out[path] = true
		}
	}
	return out
}

// cluster is a set of pools that were joined. have contains the values that most of them have, in the order
// of their paths.
type cluster struct {
	members []int
	have    []had
	other   int // lines that each pool needs for itself
	dead    bool
	stamp   int
}

type had struct{ path, value, count, lines int32 }

func (c *cluster) cost() int {
	n := len(c.members)
	sum := c.other
	for _, h := range c.have {
		sum += int(h.lines) * (n - int(h.count) + 1)
	}
	if n == 1 {
		return sum + linesOfBase - 4
	}
	return sum + linesOfBase + n*(linesOfPool+linesOfPatch)
}

// joined returns the union of two clusters, or nil if they differ too much.
func joined(a, b *cluster, keep bool) (*cluster, int) {
	n := int32(len(a.members) + len(b.members))
	out := &cluster{other: a.other + b.other}
	common, differing, cost := 0, 0, 0
	if keep {
		out.members = slices.Concat(a.members, b.members)
	}
	take := func(h had, others int) {
		if h.count*2 > n {
			cost += int(h.lines) * int(n-h.count+1)
			if keep {
				out.have = append(out.have, h)
			}
			return
		}
		out.other += others * int(h.lines)
	}
	na, nb := len(a.members), len(b.members)
	i, j := 0, 0
	for i < len(a.have) || j < len(b.have) {
		switch {
		case j == len(b.have) || i < len(a.have) && a.have[i].path < b.have[j].path:
			differing += int(a.have[i].lines)
			take(a.have[i], na)
			i++
		case i == len(a.have) || b.have[j].path < a.have[i].path:
			differing += int(b.have[j].lines)
			take(b.have[j], nb)
			j++
		default:
			x, y := a.have[i], b.have[j]
			if x.value == y.value {
				common += int(x.lines)
				x.count += y.count
				take(x, na+nb)
			} else {
				differing += int(max(x.lines, y.lines))
				if y.count > x.count {
					x = y
				}
				take(x, na+nb)
			}
			i, j = i+1, j+1
		}
	}
	if differing*2 > common {
		return nil, 0
	}
	cost += out.other + linesOfBase + int(n)*(linesOfPool+linesOfPatch)
	gain := a.cost() + b.cost() - cost
	if differing*8 <= common { // people expect one base instead of two nearly equal ones
		gain = max(gain, common)
	}
	return out, gain
}

// pair is two clusters that could be joined.
type pair struct{ gain, a, b, stampA, stampB int }

type pairs []pair

func (p pairs) Len() int      { return len(p) }
func (p pairs) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p pairs) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(p[j].gain, p[i].gain), cmp.Compare(p[i].a, p[j].a), cmp.Compare(p[i].b, p[j].b)) < 0
}
func (p *pairs) Push(x any) { *p = append(*p, x.(pair)) }
func (p *pairs) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// clustered joins parts with the same signature.
func clustered(parts []*part, passed map[string]bool) []*cluster {
	all := withoutTwins(numbered(parts, passed))
	n := min(most, len(all))
	out := absorbed(merged(all[:n:n]), all[n:])
	for _, c := range out {
		slices.Sort(c.members)
	}
	return out
}

// withoutTwins joins equal parts. Each element of single has one part.
func withoutTwins(single []*cluster) (out []*cluster) {
	same := map[string]*cluster{}
	for i, c := range single {
		key := keyOf(c.have)
		twin := same[key]
		if twin == nil {
			same[key], out = c, append(out, c)
			continue
		}
		twin.members = append(twin.members, i)
		for k := range twin.have {
			twin.have[k].count++
		}
	}
	return out
}

// merged joins two clusters at a time as long as that saves lines, the largest saving first.
func merged(all []*cluster) []*cluster {
	queue := &pairs{}
	consider := func(i, j int) (p pair, saves bool) {
		i, j = min(i, j), max(i, j)
		_, gain := joined(all[i], all[j], false)
		return pair{gain, i, j, all[i].stamp, all[j].stamp}, gain > 0
	}
	for i := range all {
		for j := range i {
			if p, saves := consider(j, i); saves {
				*queue = append(*queue, p)
			}
		}
	}
	heap.Init(queue)
	for queue.Len() > 0 {
		p := heap.Pop(queue).(pair)
		a, b := all[p.a], all[p.b]
		if a.dead || b.dead || a.stamp != p.stampA || b.stamp != p.stampB {
			continue
		}
		c, _ := joined(a, b, true)
		c.stamp = a.stamp + 1
		all[p.a], b.dead = c, true
		for i := range all {
			if i == p.a || all[i].dead {
				continue
			}
			if next, saves := consider(i, p.a); saves {
				heap.Push(queue, next)
			}
		}
	}
	return slices.DeleteFunc(all, func(c *cluster) bool { return c.dead })
}

// absorbed adds each further cluster to the cluster with which it saves most. A cluster that saves nothing
// stays separate. While few clusters are separate, further ones are compared with them too.
func absorbed(all, further []*cluster) []*cluster {
	var alone []*cluster
	for _, c := range further {
		best, gain := -1, 0
		for i := range all {
			if _, g := joined(all[i], c, false); g > gain {
				best, gain = i, g
			}
		}
		switch {
		case best >= 0:
			all[best], _ = joined(all[best], c, true)
		case len(all) < most:
			all = append(all, c)
		default:
			alone = append(alone, c)
		}
	}
	return append(all, alone...)
}

// numbered returns a cluster for each part, with paths and values as numbers.
func numbered(parts []*part, passed map[string]bool) (out []*cluster) {
	var paths []string
	for _, p := range parts {
		for _, l := range p.leaves {
			if !passed[l.path] {
				paths = append(paths, l.path)
			}
		}
	}
	slices.Sort(paths)
	pathOf := map[string]int32{}
	for _, path := range slices.Compact(paths) {
		pathOf[path] = int32(len(pathOf)) //nolint:gosec // far below 2^31
	}
	values := map[string]int32{}
	for i, p := range parts {
		c := &cluster{members: []int{i}}
		for _, l := range p.leaves {
			if passed[l.path] {
				continue
			}
			v, ok := values[l.text]
			if !ok {
				v = int32(len(values)) //nolint:gosec // as above
				values[l.text] = v
			}
			c.have = append(c.have, had{pathOf[l.path], v, 1, int32(l.lines)}) //nolint:gosec // as above
		}
		out = append(out, c)
	}
	return out
}

func keyOf(have []had) string {
	var key []byte
	for _, h := range have {
		key = strconv.AppendInt(key, int64(h.path), 10)
		key = append(key, ' ')
		key = strconv.AppendInt(key, int64(h.value), 10)
		key = append(key, ' ')
	}
	return string(key)
}

// majority returns the leaves that more than half of the pools have.
func majority(parts []*part) (out []leaf) {
	count := map[string]int{}
	first := map[string]leaf{}
	for _, p := range parts {
		for _, l := range p.leaves {
			key := l.path + joint + joint + l.text
			if count[key]++; count[key] == 1 {
				first[key] = l
			}
		}
	}
	for key, n := range count {
		if n*2 > len(parts) {
			out = append(out, first[key])
		}
	}
	slices.SortFunc(out, func(a, b leaf) int { return strings.Compare(a.path, b.path) })
	return out
}
