// Of your edge: `deniable edge --show-key` prints the key. Above `maxEpsilon`, a collection is not reported.
export const options = {
  edge: "https://edge.example",
  publicKey: "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=",
  maxEpsilon: { plan: 2 },
};
