package execute

import (
	"maps"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// retag sets and removes tags, with one call each. It never sends an empty list, because DeleteTags would
// delete every tag. It removes tags first, because a tag to set may record which tags weir may remove. If
// the owner changes, it first sets the new owner and all tags except the record, because IAM lets only the
// owner remove tags.
func retag[T any](put map[string]T, remove []string, set func(map[string]T) error, unset func([]string) error) error {
	last := maps.Clone(put)
	if _, owner := put[observed.TagOwner]; owner && len(remove) > 0 {
		first := maps.Clone(put)
		delete(first, observed.TagKeys)
		if err := set(first); err != nil {
			return err
		}
		maps.DeleteFunc(last, func(k string, _ T) bool { return k != observed.TagKeys })
	}
	if len(remove) > 0 {
		if err := unset(remove); err != nil {
			return err
		}
	}
	if len(last) > 0 {
		return set(last)
	}
	return nil
}
