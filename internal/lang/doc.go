// Package lang says in another language what the rest of preflight says in English.
//
// Checks, facts and errors are written once, in English, with fmt formats. Translation happens at the edge, where a
// person reads: a finished text is matched against the formats in zh/*.txt and said again in the language, its
// values carried over. So findings stay comparable whatever was spoken, and a report that was saved in English, or
// came from another machine, can be read in Chinese.
//
// A file of zh/ holds pairs of lines, English format and Chinese format, with blank lines and # comments between.
// The Chinese has the same placeholders; where their order differs it numbers them (%[2]s). A value that is itself an
// English entry ("virtual machine", a reason within a sentence) is translated too.
//
// What lives here: languages, and the pairs. What never will: decisions, layout, and the texts of remedies and of the
// manual, which stand beside their English in their own rooms.
package lang
