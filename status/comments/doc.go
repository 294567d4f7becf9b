// Package comments reports pull requests on their forges: in the status of the head, and
// in one comment that is edited in place. Texts of others are escaped, so that nothing in
// them acts on a forge, and a comment that would be too long leaves out the least
// important parts first.
package comments
