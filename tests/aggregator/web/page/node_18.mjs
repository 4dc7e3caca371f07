// What browsers have and Node 18 lacks.

Array.prototype.toReversed ??= function toReversed() { return [...this].reverse(); };
Array.prototype.toSorted ??= function toSorted(order) { return [...this].sort(order); };
