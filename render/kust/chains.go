package kust

// chains groups n members that share a name, directly or through other members. Element i
// is the group of member i, including i. When kustomize renames an object, references to it
// get the new name. If another object had that name before, kustomize may rename these
// references again, so a batch needs the whole group.
func chains(n int, byName map[string][]int) [][]int {
	parent := make([]int, n)
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for _, of := range byName {
		for _, i := range of[1:] {
			parent[root(i)] = root(of[0])
		}
	}
	out := make([][]int, n)
	for i := range n {
		out[root(i)] = append(out[root(i)], i)
	}
	for i := range n {
		out[i] = out[root(i)]
	}
	return out
}
