// Package comments reports pull requests on their forges: in the status of the head, and in one comment
// that is edited in place. It escapes text from outside, so that nothing in it has an effect on the forge.
// If a comment would be too long, it omits the least important parts first.
package comments
