package factor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// nameBases gives each shape a readable name: the common part of its pools' names without their cluster's name,
// or else its kind.
func (w *writer) nameBases() {
	taken := map[string]bool{}
	slices.SortFunc(w.shapes, func(a, b *shape) int {
		return cmp.Or(cmp.Compare(a.signature(), b.signature()), cmp.Compare(len(b.parts), len(a.parts)), cmp.Compare(a.parts[0].pool.Name, b.parts[0].pool.Name))
	})
	for _, s := range w.shapes {
		names := s.stems()
		s.name = cmp.Or(first(names), s.what())
		if taken[s.name] {
			if s.name = s.name + "-" + s.what(); taken[s.name] {
				s.name = unique(s.name, taken)
			}
		}
		taken[s.name] = true
	}
	// The name of a base's objects must not be the name of a pool or of another base's objects.
	for _, s := range w.shapes {
		fits := func(name string) bool { return !w.taken[name] && !taken["."+name] }
		for _, name := range append(s.stems(), s.name, s.name+"-base") {
			if fits(name) {
				s.called = name
				break
			}
		}
		for i := 2; s.called == ""; i++ {
			if name := fmt.Sprint(s.name, "-base-", i); fits(name) {
				s.called = name
			}
		}
		taken["."+s.called] = true
	}
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func (s *shape) signature() string { return s.parts[0].signature }

// stems returns sequences of words that most pools' names have: the most frequent ones first, and then the
// longest. It ignores words of clusters' names, because pools of further clusters may use the base.
func (s *shape) stems() (out []string) {
	count := map[string]int{}
	for _, p := range s.parts {
		of := words(p.pool.Cluster)
		for run := range runs(p.pool.Name, of) {
			count[run]++
		}
	}
	for run, n := range count {
		if n*2 > len(s.parts) {
			out = append(out, run)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	return out
}

// words returns the parts of a name.
func words(name string) []string { return strings.FieldsFunc(name, isSeparator) }

func isSeparator(r rune) bool { return r == '-' || r == '.' }

// runs returns the sequences of meaningful words in a name, in their original form.
func runs(name string, cluster []string) map[string]bool {
	out := map[string]bool{}
	type word struct{ from, to int }
	var found []word
	for i := 0; i < len(name); {
		j := i
		for j < len(name) && !isSeparator(rune(name[j])) {
			j++
		}
		if j > i {
			found = append(found, word{i, j})
		}
		i = j + 1
	}
	said := func(w word) bool {
		text := name[w.from:w.to]
		return !slices.Contains(cluster, text) && !arbitrary(text)
	}
	for i := range found {
		if !said(found[i]) {
			continue
		}
		for j := i; j < len(found) && j < i+6; j++ {
			if said(found[j]) {
				out[strings.ReplaceAll(name[found[i].from:found[j].to], ".", "-")] = true
				out[name[found[i].from:found[j].to]] = true
			}
		}
	}
	for run := range out {
		if strings.Contains(run, ".") {
			delete(out, run)
		}
	}
	return out
}

// arbitrary reports whether a word only distinguishes pools: a number, a hash or a letter.
func arbitrary(word string) bool {
	letters := strings.Trim(word, "0123456789")
	hex := strings.Trim(word, "0123456789abcdef") == "" && strings.ContainsAny(word, "0123456789") && len(word) >= 5
	return len(letters) < 2 || hex
}

// what returns a description of the base, for use if the names give none.
func (s *shape) what() string {
	noun, spot, mixed := "group", false, false
	for _, l := range s.base {
		if strings.Contains(l.role, "AWSManagedMachinePool") {
			noun = "nodegroup"
		}
		switch l.keys[len(l.keys)-1] {
		case "capacityType":
			spot = l.text == `"spot"`
		case "instancesDistribution", "onDemandBaseCapacity":
			mixed = true
		}
	}
	switch {
	case spot:
		return "spot-" + noun
	case mixed:
		return "mixed-" + noun
	}
	return noun
}

// split returns the prefix and suffix that turn the base's name into the pool's name. ok is false if none
// exist, or if kustomize would confuse an intermediate name with another pool's.
func (w *writer) split(p *part) (prefix, suffix string, ok bool) {
	name, called := p.pool.Name, p.shape.called
	for from := 0; from+len(called) <= len(name); from++ {
		i := strings.Index(name[from:], called)
		if i < 0 {
			return "", "", false
		}
		i += from
		prefix, suffix = name[:i], name[i+len(called):]
		begins := prefix == "" || isSeparator(rune(prefix[len(prefix)-1]))
		ends := suffix == "" || isSeparator(rune(suffix[0]))
		if begins && ends {
			between := prefix + called
			return prefix, suffix, suffix == "" || prefix == "" || !w.taken[between]
		}
		from = i
	}
	return "", "", false
}

// fileName returns a name that every file system and kustomize accept for a file.
func fileName(name string) string {
	name = strings.ReplaceAll(name, ".", "-")
	device := strings.TrimRight(name, "0123456789")
	if slices.Contains([]string{"con", "prn", "aux", "nul", "kustomization"}, name) || slices.Contains([]string{"com", "lpt"}, device) && len(name) == 4 {
		return name + "-pool"
	}
	return name
}

// unique returns a name that is not taken yet, ignoring case, and marks it as taken.
func unique(name string, taken map[string]bool) string {
	out := name
	for i := 2; taken[strings.ToLower(out)]; i++ {
		out = name + "-" + strconv.Itoa(i)
	}
	taken[strings.ToLower(out)] = true
	return out
}
