package kust

// chains returns for each of n members those that it shares a name with, directly or through
// others. A reference takes the new name of its object, and may then follow another object
// that had this name before.
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
