package dynamodb

import (
	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// The limits of keys and items in DynamoDB, in bytes.
const (
	maxHashKey  = 2048
	maxRangeKey = 1024
	maxItem     = 400 << 10
)

// isKey reports whether an attribute belongs to the key.
func (t *Table) isKey(name string) bool {
	return t.Keys[0].Name == name || len(t.Keys) == 2 && t.Keys[1].Name == name
}

// keyOf returns the key of an item.
func (t *Table) keyOf(item attr.Item) attr.Item {
	out := attr.Item{}
	for _, k := range t.Keys {
		out[k.Name] = item[k.Name]
	}
	return out
}

// checkKey checks a key, which must have exactly the key's attributes.
func (t *Table) checkKey(key attr.Item) error {
	for _, k := range t.Keys {
		if key[k.Name].Type != k.Type || len(key) != len(t.Keys) {
			return attr.Invalid("The provided key element does not match the schema")
		}
	}
	return t.checkKeyValues(key)
}

// checkItem checks an item to store.
func (t *Table) checkItem(item attr.Item, tooLarge string) error {
	for _, k := range t.Keys {
		switch v, there := item[k.Name]; {
		case !there:
			return attr.Invalid("One or more parameter values were invalid: Missing the key %s in the item", k.Name)
		case v.Type != k.Type:
			return attr.Invalid("One or more parameter values were invalid: Type mismatch for key %s expected: %s actual: %s", k.Name, k.Type, v.Type)
		}
	}
	if item.Size() > maxItem {
		return attr.Invalid("%s", tooLarge)
	}
	if err := item.CheckDepth(); err != nil {
		return err
	}
	return t.checkKeyValues(item)
}

func (t *Table) checkKeyValues(item attr.Item) error {
	for i, k := range t.Keys {
		v := item[k.Name]
		if v.Type != "N" && v.Text == "" {
			kind := map[string]string{"S": "string", "B": "binary"}[v.Type]
			return attr.Invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", kind, k.Name)
		}
		switch {
		case i == 0 && v.Size() > maxHashKey:
			return attr.Invalid("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of%d bytes", maxHashKey)
		case i == 1 && v.Size() > maxRangeKey:
			return attr.Invalid("One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of %d bytes", maxRangeKey)
		}
	}
	return nil
}

// rowKey returns the position of the item in its table. Items with the same hash key are adjacent, in the
// order of the range key.
func (t *Table) rowKey(item attr.Item) string {
	row := partition(item[t.Keys[0].Name])
	if len(t.Keys) == 2 {
		row += item[t.Keys[1].Name].Sortable()
	}
	return row
}

// partition returns the common prefix of the rowKeys of a hash key.
func partition(hash attr.Value) string {
	key := hash.Sortable()
	return world.Hash(key, 16) + "." + key + "."
}
